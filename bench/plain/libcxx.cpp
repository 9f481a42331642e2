// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libc++'s containers. Built with -stdlib=libc++.
#include "containers.hpp"
#include "files.hpp"

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

HF_PLAIN_BEGIN(libcxx)

using number = std::uint64_t;
using pair_allocator = hf::allocator<std::pair<const number, number>>;
using map = std::map<number, number, std::less<number>, pair_allocator>;
using unordered_map =
    std::unordered_map<number, number, std::hash<number>, std::equal_to<number>, pair_allocator>;
using vector = std::vector<number, hf::allocator<number>>;
using deque = std::deque<number, hf::allocator<number>>;
using string = std::basic_string<char, std::char_traits<char>, hf::allocator<char>>;

constexpr subject all[] = {
    keyed<map>("libc++ map"),          keyed<unordered_map>("libc++ unordered_map"),
    stack_of<vector>("libc++ vector"), queue_of<deque>("libc++ deque"),
    stack_of<string>("libc++ string"),
};
subjects list() { return {all, sizeof all / sizeof all[0]}; }

HF_PLAIN_END
