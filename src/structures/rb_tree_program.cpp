// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The red-black tree, built once per engine: every case of its rebalancing, on both sides where it
// inserts. "r" is a red node, "b" a black one.
#include "tree_program.hpp"
#include <structures/rb_tree.hpp>

namespace hf::structures {
namespace {

void add(const char* what, steps before, std::vector<steps> of_threads) {
    add_program<rb_tree<std::uint64_t, std::uint64_t>>("rb_tree", what, std::move(before),
                                                       std::move(of_threads));
}

[[maybe_unused]] const bool added = [] {
    add("insert", {}, {inserted({1, 2, 3})}); // the top, below it, rotated
    add("insert outside", inserted({40, 30, 50, 60}), {inserted({20, 10, 70})});
    add("insert inside", inserted({40, 30, 50, 60}), {inserted({20, 25, 55})});
    add("insert recoloured", inserted({2, 1, 3}), {inserted({4, 5, 6})});
    add("insert recoloured, rotated above", inserted({1, 2, 3, 4, 5, 6, 7}), {inserted({8})});
    add("insert recoloured to the top", inserted({1, 2, 3, 4, 5, 6, 7, 8, 9}), {inserted({10})});
    add("assign", inserted({2, 1, 3}), {{{1, 7}, {2, 8}}});
    add("erase leaves", inserted({2, 1, 3, 4}), {erasing({4, 1, 3, 2})}); // r, b, r, the top
    add("erase with one child", inserted({2, 1, 3, 4}), {erasing({3, 2})});
    // 4b(2r(1b 3b) 6r(5b 7b(- 8r))): siblings without, and with, a red child.
    const steps eight = inserted({1, 2, 3, 4, 5, 6, 7, 8});
    add("erase, sibling's far child red", eight, {erasing({5})});
    add("erase, sibling black", eight, {erasing({1, 3})});
    add("erase, sibling's near child red", inserted({2, 1, 4, 5, 3}), {erasing({1})});
    add("erase, sibling's near child only red", inserted({2, 1, 4, 3}), {erasing({1})});
    add("erase, sibling red", inserted({2, 1, 4, 3, 5, 6}), {erasing({1})});
    add("erase, one black less everywhere", inserted({2, 1, 3, 4, 5, 6, 7, 8, 9, 10}),
        {erasing({1})});
    add("erase between", eight, {erasing({6, 4})}); // the heir is a child, and deeper
    add("erase and insert", inserted({2, 1, 3}), {{{1, erased}, {4, 4}}}); // in freed memory
    add("two threads", inserted({2}), {inserted({1}), erasing({2})});
    add("two threads, both erase", inserted({2, 1, 3}), {erasing({1}), erasing({3})});
    using apart = rb_tree<std::uint64_t, wide>; // values have blocks of their own
    add_program<apart>("rb_tree", "values apart", inserted({2, 1}), {{{3, 3}, {2, 7}}});
    add_program<apart>("rb_tree", "values apart, erased", inserted({2, 1}),
                       {{{1, erased}, {4, 4}}});
    return true;
}();

} // namespace
} // namespace hf::structures
