// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rb_tree<Key, Value>: a red-black tree under one reader-writer lock.
//
//   (1) The top is black; a red node has no red child.
//   (2) Every way from a node down to a missing child meets as many black nodes as any other.
//
// What an operation costs, and why its section has nothing to log: search_tree.hpp, tree_draft.hpp.
//
// Source: Guibas and Sedgewick 1978; Clobber §5.1, the red-black tree with one lock.
#pragma once

#include <structures/search_tree.hpp>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// The tag of a node is its colour.
struct red_black {
    static constexpr unsigned red = 0, black = 1;

    /// Rebalances above a red leaf.
    static void inserted(tree_draft& tree, tree_node* node) noexcept {
        for (;;) {
            tree_node* parent = tree.parent(node);
            if (parent == nullptr) return tree.set_tag(node, black);
            if (tree.tag(parent) == black) return;
            tree_node* above = tree.parent(parent); // is there: the top is not red
            const unsigned side = tree.side(parent);
            tree_node* uncle = tree.child(above, 1 - side);
            if (!is_red(tree, uncle)) return lift(tree, node, parent, above, side);
            tree.set_tag(parent, black);
            tree.set_tag(uncle, black);
            tree.set_tag(above, red);
            node = above;
        }
    }

    /// Rebalances where a node is gone: when it was black, one is missing on the ways through
    /// there.
    static void erased(tree_draft& tree, tree_gap gap) noexcept {
        if (gap.tag == red) return;
        tree_node* node = gap.parent != nullptr ? tree.child(gap.parent, gap.side) : tree.top();
        tree_node* parent = gap.parent;
        unsigned side = gap.side;
        while (parent != nullptr && !is_red(tree, node)) {
            if (fill_from_sibling(tree, parent, side)) return;
            node = parent;
            side = tree.side(node);
            parent = tree.parent(node);
        }
        if (node != nullptr) tree.set_tag(node, black);
    }

    /// The black nodes on a way down, or -1.
    static int height(const tree_node* node, int left, int right) noexcept {
        if (left != right || tag_of(node) > black) return -1;
        if (tag_of(node) == black) return left + 1;
        if (parent_of(node) == nullptr) return -1;
        for (const tree_node* child : node->child)
            if (child != nullptr && tag_of(child) == red) return -1;
        return left;
    }

private:
    static bool is_red(const tree_draft& tree, tree_node* node) noexcept {
        return node != nullptr && tree.tag(node) == red;
    }

    // 'node' and 'parent' are red, the uncle is not: one of the two takes the place of 'above'.
    static void lift(tree_draft& tree, tree_node* node, tree_node* parent, tree_node* above,
                     unsigned side) noexcept {
        if (tree.child(parent, 1 - side) == node) {
            tree.rotate(parent, side);
            parent = node;
        }
        tree.rotate(above, 1 - side);
        tree.set_tag(parent, black);
        tree.set_tag(above, red);
    }

    // A black node is missing on 'side' of 'parent'. False: now it is missing above 'parent'.
    static bool fill_from_sibling(tree_draft& tree, tree_node* parent, unsigned side) noexcept {
        tree_node* sibling = tree.child(parent, 1 - side); // is there: its side is higher
        if (is_red(tree, sibling)) {
            tree.rotate(parent, side);
            tree.set_tag(sibling, black);
            tree.set_tag(parent, red);
            sibling = tree.child(parent, 1 - side);
        }
        tree_node* near = tree.child(sibling, side);
        tree_node* far = tree.child(sibling, 1 - side);
        if (!is_red(tree, near) && !is_red(tree, far)) {
            tree.set_tag(sibling, red);
            return false;
        }
        if (!is_red(tree, far)) {
            tree.rotate(sibling, 1 - side);
            far = sibling;
            sibling = near;
        }
        tree.rotate(parent, side);
        tree.set_tag(sibling, tree.tag(parent));
        tree.set_tag(parent, black);
        tree.set_tag(far, black);
        return true;
    }
};

template <class Key, class Value> using rb_tree = search_tree<Key, Value, red_black>;

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
