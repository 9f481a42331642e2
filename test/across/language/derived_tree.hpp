// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tree of derived_test.cpp and what follows from its links, for translation units that are
// built for different engines.
#pragma once

#include <holdfast/author/derived.hpp>
#include <holdfast/pool.hpp>

namespace hf::derived_tree {

struct node {
    node* child[2];
    node* parent;
    long nodes; // of those below, and itself
    long key;
};
struct tree {
    node* top;
    long count;
};

inline long nodes_of(const node& at) {
    long all = 1;
    for (const node* below : at.child) all += below != nullptr ? below->nodes : 0;
    return all;
}

using recovery =
    derived::recovery<derived::links<&tree::top, &node::child>, derived::parent<&node::parent>,
                      derived::value<&node::nodes, nodes_of>, derived::count<&tree::count>>;

/// recovery::rebuild, as a translation unit has it that is built for no engine.
void (*found_elsewhere() noexcept)(pool&);
/// The same with a function for the rest, which stores by hf::lazy().
void (*rest_found_elsewhere() noexcept)(pool&);

} // namespace hf::derived_tree
