// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The B+tree with nodes of few slots, built once per engine: every operation that writes, every
// kind of split, and every way in which nodes go. An operation that finds its leaf full, or with
// one key only, is two sections: the first stores nothing.
#include "ordered_map_program.hpp"
#include <structures/bptree.hpp>

namespace hf::structures {
namespace {

// Two keys fill a leaf, three children an inner node.
using tree = bptree<std::uint64_t, std::uint64_t, 2, 3>;
using steps = std::vector<map_step>;

steps ascending(std::uint64_t count) {
    steps all;
    for (std::uint64_t i = 1; i <= count; ++i) all.push_back({10 * i, i});
    return all;
}
void add(const char* what, steps before, std::vector<steps> of_threads, bool eadr = false) {
    add_program<tree>("bptree", what, std::move(before), std::move(of_threads), eadr);
}

[[maybe_unused]] const bool added = [] {
    // The trees before, leaves in {}, nodes above them in []:
    const steps two_leaves = ascending(3); // [{10} {20 30}]
    const steps full_root = ascending(4);  // [{10} {20} {30 40}]
    const steps two_levels = ascending(6); // [[{10} {20}] [{30} {40} {50 60}]]
    steps a_stalk = ascending(5);          // [[{20}] [{30} {40 50}]]
    a_stalk.push_back({10, erased});
    steps only_a_stalk = ascending(3); // [{30}]
    only_a_stalk.push_back({10, erased});
    only_a_stalk.push_back({20, erased});
    steps with_room = ascending(3); // [{10} {20}]
    with_room.push_back({30, erased});
    steps roomy_leaves = ascending(4); // [{20 25} {30 40}]
    roomy_leaves.push_back({10, erased});
    roomy_leaves.push_back({25, 9});

    add("insert", {}, {{{10, 1}, {20, 2}}}); // makes the root, then uses a slot of it
    add("assign", two_leaves, {{{10, 7}, {30, 8}}});
    add("split root leaf", ascending(2), {{{15, 7}}});
    add("split last", ascending(2), {{{30, 3}}});
    add("split leaf", two_leaves, {{{25, 7}}});
    add("split root", full_root, {{{35, 7}}});
    add("split inner", two_levels, {{{55, 7}}});
    add("erase", two_leaves, {{{20, erased}, {20, 7}}});
    add("erase leaf", two_leaves, {{{10, erased}, {25, 7}}}); // and split in its memory
    add("erase stalk", a_stalk, {{{20, erased}, {25, 7}}});
    add("erase root", ascending(1), {{{10, erased}, {20, 7}}});
    add("erase all", only_a_stalk, {{{30, erased}, {20, 7}}});
    add("two threads", with_room, {{{5, 7}}, {{25, 8}}});
    add("two threads in a leaf", ascending(1), {{{20, 7}}, {{10, 8}}});
    add("two threads in a leaf, eadr", ascending(1), {{{20, 7}}, {{10, 8}}}, true);
    // The key that splits goes to the right half, the other one to the left.
    add("two threads, one splits", roomy_leaves, {{{27, 7}}, {{22, 8}}});
    add("two threads, one erases", two_leaves, {{{10, erased}}, {{5, 8}}});
    return true;
}();

} // namespace
} // namespace hf::structures
