// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// avl_tree<Key, Value>: an AVL tree under one reader-writer lock.
//
//   (1) The heights of a node's two sides differ by one at most; its tag says which one is higher.
//
// What an operation costs, and why its section has nothing to log: search_tree.hpp, tree_draft.hpp.
//
// Source: Adelson-Velsky and Landis 1962; STAMP's vacation runs on it (Clobber §5.1).
#pragma once

#include <structures/search_tree.hpp>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// The tag of a node is the side on which it is higher.
struct avl {
    static constexpr unsigned even = 0;
    static constexpr unsigned higher(unsigned side) { return 1 + side; }

    /// Rebalances above a leaf: it has made its side of the parent higher by one.
    static void inserted(tree_draft& tree, tree_node* node) noexcept {
        while (tree_node* parent = tree.parent(node)) {
            const unsigned side = tree.side(node);
            const unsigned tag = tree.tag(parent);
            if (tag == higher(1 - side)) return tree.set_tag(parent, even);
            if (tag == higher(side)) {
                lower(tree, parent, side);
                return;
            }
            tree.set_tag(parent, higher(side));
            node = parent;
        }
    }

    /// Rebalances where a node is gone: that side of the parent is lower by one.
    static void erased(tree_draft& tree, tree_gap gap) noexcept {
        tree_node* node = gap.parent;
        unsigned side = gap.side;
        while (node != nullptr) {
            tree_node* parent = tree.parent(node);
            const unsigned side_of_parent = tree.side(node);
            const unsigned tag = tree.tag(node);
            if (tag == even) return tree.set_tag(node, higher(1 - side));
            if (tag == higher(side)) tree.set_tag(node, even);
            else if (!lower(tree, node, 1 - side)) return;
            node = parent;
            side = side_of_parent;
        }
    }

    /// The nodes on the longest way down, or -1.
    static int height(const tree_node* node, int left, int right) noexcept {
        const int lean = right - left;
        if (lean < -1 || lean > 1) return -1;
        const unsigned tag = lean == 0 ? even : higher(lean > 0 ? 1 : 0);
        if (tag_of(node) != tag) return -1;
        return 1 + (left > right ? left : right);
    }

private:
    // 'node' is higher by two on 'side': something from there takes its place. Whether all that
    // hangs there is lower than before by one; not so only when the child there is even, which
    // happens in erasures alone.
    static bool lower(tree_draft& tree, tree_node* node, unsigned side) noexcept {
        tree_node* child = tree.child(node, side);
        if (tree.tag(child) == higher(1 - side)) {
            tree_node* inner = tree.child(child, 1 - side);
            const unsigned tag = tree.tag(inner);
            tree.rotate(child, side);
            tree.rotate(node, 1 - side);
            tree.set_tag(node, tag == higher(side) ? higher(1 - side) : even);
            tree.set_tag(child, tag == higher(1 - side) ? higher(side) : even);
            tree.set_tag(inner, even);
            return true;
        }
        const bool was_even = tree.tag(child) == even;
        tree.rotate(node, 1 - side);
        tree.set_tag(node, was_even ? higher(side) : even);
        tree.set_tag(child, was_even ? higher(1 - side) : even);
        return !was_even;
    }
};

template <class Key, class Value> using avl_tree = search_tree<Key, Value, avl>;

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
