// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/avl_tree.hpp>
#include <structures/ordered_map_test.hpp>

namespace hf::structures::test {

std::vector<configuration> configurations() { return every_configuration<avl_tree>(); }

} // namespace hf::structures::test
