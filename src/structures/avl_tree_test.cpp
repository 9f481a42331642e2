// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/avl_tree.hpp>
#include <structures/ordered_map_test.hpp>

namespace hf::structures::test {

struct avl_trees {
    template <class Key, class Value> using map = avl_tree<Key, Value>;
};
INSTANTIATE_TYPED_TEST_SUITE_P(avl_tree, ordered_map_test, every_configuration<avl_trees>);

} // namespace hf::structures::test
