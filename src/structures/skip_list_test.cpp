// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/ordered_map_test.hpp>
#include <structures/skip_list.hpp>

namespace hf::structures::test {

struct skip_lists {
    template <class Key, class Value> using map = skip_list<Key, Value>;
};
INSTANTIATE_TYPED_TEST_SUITE_P(skip_list, ordered_map_test, every_configuration<skip_lists>);

} // namespace hf::structures::test
