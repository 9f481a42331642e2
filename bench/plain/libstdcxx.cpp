// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libstdc++'s containers whose code is all in headers.
#include "containers.hpp"
#include "files.hpp"

#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

HF_PLAIN_BEGIN(libstdcxx)

using number = std::uint64_t;
using unordered_map = std::unordered_map<number, number, std::hash<number>, std::equal_to<number>,
                                         hf::allocator<std::pair<const number, number>>>;
using vector = std::vector<number, hf::allocator<number>>;
using deque = std::deque<number, hf::allocator<number>>;
using string = std::basic_string<char, std::char_traits<char>, hf::allocator<char>>;

constexpr subject all[] = {
    keyed<unordered_map>("libstdc++ unordered_map"),
    stack_of<vector>("libstdc++ vector"),
    queue_of<deque>("libstdc++ deque"),
    stack_of<string>("libstdc++ string"),
};
subjects list() { return {all, sizeof all / sizeof all[0]}; }

HF_PLAIN_END
