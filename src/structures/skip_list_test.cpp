// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/ordered_map_test.hpp>
#include <structures/skip_list.hpp>

namespace hf::structures::test {

std::vector<configuration> configurations() { return every_configuration<skip_list>(); }

} // namespace hf::structures::test
