// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/ordered_map_test.hpp>
#include <structures/rb_tree.hpp>

namespace hf::structures::test {

struct rb_trees {
    template <class Key, class Value> using map = rb_tree<Key, Value>;
};
INSTANTIATE_TYPED_TEST_SUITE_P(rb_tree, ordered_map_test, every_configuration<rb_trees>);

} // namespace hf::structures::test
