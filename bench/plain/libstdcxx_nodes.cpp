// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libstdc++'s map and list, whose nodes are linked by <holdfast/libstdcxx.hpp>.
#include "containers.hpp"
#include "files.hpp"

#include <holdfast/libstdcxx.hpp>

HF_PLAIN_BEGIN(libstdcxx_nodes)

using number = std::uint64_t;
using map =
    std::map<number, number, std::less<number>, hf::allocator<std::pair<const number, number>>>;
using linked = std::list<number, hf::allocator<number>>;

constexpr subject all[] = {keyed<map>("libstdc++ map"), queue_of<linked>("libstdc++ list")};
subjects list() { return {all, sizeof all / sizeof all[0]}; }

HF_PLAIN_END
