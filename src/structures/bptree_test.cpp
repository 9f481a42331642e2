// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/bptree.hpp>
#include <structures/ordered_map_test.hpp>

namespace hf::structures::test {

std::vector<configuration> configurations() {
    std::vector<configuration> all = every_configuration<bptree>();
    // Few slots: many levels, and splits and erasures of whole stalks all the time.
    using narrow = bptree<std::uint64_t, value, 2, 4>;
    all.push_back({"narrow", mode::pmem, root_of<std::uint64_t, narrow>});
    return all;
}

} // namespace hf::structures::test
