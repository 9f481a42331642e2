// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The AVL tree, built once per engine: every case of its rebalancing, on both sides where it
// inserts.
#include "tree_program.hpp"
#include <structures/avl_tree.hpp>

namespace hf::structures {
namespace {

void add(const char* what, steps before, std::vector<steps> of_threads) {
    add_program<avl_tree<std::uint64_t, std::uint64_t>>("avl_tree", what, std::move(before),
                                                        std::move(of_threads));
}

[[maybe_unused]] const bool added = [] {
    add("insert", {}, {inserted({1, 2, 3})}); // the top, below it, rotated
    add("insert outside", inserted({40, 30, 50}), {inserted({20, 10, 60, 70})});
    add("insert inside", inserted({40, 30, 50}), {inserted({20, 25, 60, 55})});
    // Rotated at the top; the subtree between the two goes to one side or the other.
    add("insert outside, below", inserted({40, 20, 50, 10, 30}), {inserted({5})});
    add("insert inside, left below", inserted({40, 20, 50, 10, 30, 60}), {inserted({25, 26})});
    add("insert inside, low", inserted({40, 20, 50, 10, 30}), {inserted({25})});
    add("insert inside, high", inserted({40, 20, 50, 10, 30}), {inserted({35})});
    add("assign", inserted({2, 1, 3}), {{{1, 7}, {2, 8}}});
    add("erase leaves", inserted({2, 1, 3, 4}), {erasing({4, 1, 3, 2})});
    add("erase with one child", inserted({2, 1, 3, 4}), {erasing({3, 2})});
    add("erase, rotated once", inserted({2, 1, 3, 4}), {erasing({1})});
    add("erase, rotated once, as high as before", inserted({2, 1, 4, 3, 5}), {erasing({1})});
    add("erase, rotated twice", inserted({2, 1, 4, 3}), {erasing({1})});
    // A Fibonacci tree: every node leans to the left, an erasure on the right rotates each level.
    add("erase, rotated on two levels", inserted({8, 5, 11, 3, 7, 10, 12, 2, 4, 6, 9, 1}),
        {erasing({12})});
    add("erase between", inserted({4, 2, 6, 1, 3, 5, 7, 8}), {erasing({6, 4})});
    add("erase and insert", inserted({2, 1, 3}), {{{1, erased}, {4, 4}}}); // in freed memory
    add("two threads", inserted({2}), {inserted({1}), erasing({2})});
    add("two threads, both erase", inserted({2, 1, 3}), {erasing({1}), erasing({3})});
    using apart = avl_tree<std::uint64_t, wide>; // values have blocks of their own
    add_program<apart>("avl_tree", "values apart", inserted({2, 1}), {{{3, 3}, {2, 7}}});
    add_program<apart>("avl_tree", "values apart, erased", inserted({2, 1}),
                       {{{1, erased}, {4, 4}}});
    return true;
}();

} // namespace
} // namespace hf::structures
