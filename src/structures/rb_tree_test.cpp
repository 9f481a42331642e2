// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/ordered_map_test.hpp>
#include <structures/rb_tree.hpp>

namespace hf::structures::test {

std::vector<configuration> configurations() { return every_configuration<rb_tree>(); }

} // namespace hf::structures::test
