// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <structures/bptree.hpp>
#include <structures/ordered_map_test.hpp>

namespace hf::structures::test {

struct bptrees {
    template <class Key, class Value> using map = bptree<Key, Value>;
};
INSTANTIATE_TYPED_TEST_SUITE_P(bptree, ordered_map_test, every_configuration<bptrees>);

// Few slots: many levels, and splits and erasures of whole stalks all the time.
struct narrow_bptrees {
    template <class Key, class Value> using map = bptree<Key, Value, 2, 4>;
};
using narrow_configuration = configuration<narrow_bptrees, std::uint64_t, mode::pmem>;
INSTANTIATE_TYPED_TEST_SUITE_P(narrow_bptree, ordered_map_test, narrow_configuration);

} // namespace hf::structures::test
