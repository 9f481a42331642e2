// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// rb_tree<Key, Value>: a red-black tree under one reader-writer lock.
//
//   (1) The top is black; a red node has no red child.
//   (2) Every way from a node down to a missing child meets as many black nodes as any other.
//
// What an operation costs: search_tree.hpp.
//
// Source: Guibas and Sedgewick 1978; Clobber §5.1, the red-black tree with one lock.
#pragma once

#include <structures/search_tree.hpp>

#include <holdfast/author/selective.hpp>

#include <algorithm>
#include <cstdint>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// The mark of a node is its colour.
struct red_black {
    static constexpr std::int64_t red = 0, black = 1;

    /// Rebalances above a red leaf.
    static void inserted(tree_root& tree, tree_node* node) noexcept {
        while (is_red(node->parent)) {
            tree_node* parent = node->parent;
            tree_node* above = parent->parent; // is there: the top is not red
            const unsigned side = parent->side();
            tree_node* uncle = above->child[1 - side];
            hf::lazy(above->mark) = red;
            if (is_red(uncle)) {
                hf::lazy(parent->mark) = black;
                hf::lazy(uncle->mark) = black;
                node = above;
                continue;
            }
            if (node->side() != side) {
                tree.rotate(parent, side);
                parent = node;
            }
            hf::lazy(parent->mark) = black;
            tree.rotate(above, 1 - side);
            return;
        }
        if (node->parent == nullptr) hf::lazy(node->mark) = black;
    }

    /// Rebalances after the removal of a node of that colour: if it was black, the ways through its
    /// place lack one.
    static void erased(tree_root& tree, tree_node* parent, unsigned side,
                       std::int64_t colour) noexcept {
        if (colour == red) return;
        tree_node* node = *tree.link(parent, side);
        while (parent != nullptr && !is_red(node)) {
            tree_node* sibling = parent->child[1 - side]; // is there: its side is higher
            if (is_red(sibling)) {
                hf::lazy(sibling->mark) = black;
                hf::lazy(parent->mark) = red;
                tree.rotate(parent, side);
                sibling = parent->child[1 - side];
            }
            if (is_red(sibling->child[0]) || is_red(sibling->child[1]))
                return lend(tree, parent, sibling, side);
            hf::lazy(sibling->mark) = red; // now one is missing above, too
            node = parent;
            side = node->side();
            parent = node->parent;
        }
        if (node != nullptr) hf::lazy(node->mark) = black;
    }

    /// Finds colours for a tree that may have lost its own. Let m and M be the numbers of nodes on
    /// a node's shortest and longest way down. With b black nodes on every way the node can be
    /// black if M <= 2 b and b <= m, and red if M <= 2 b + 1 and b < m. In either case its children
    /// can have the colours that they need, since M <= 2 m.
    static void restore(tree_root& tree) noexcept {
        if (tree.top == nullptr) return;
        paint(tree.top, measure(tree.top).shortest, false);
    }

    /// The black nodes on a way down, or -1.
    static int height(const tree_node* node, int left, int right) noexcept {
        if (left != right || (node->mark != red && node->mark != black)) return -1;
        if (node->mark == black) return left + 1;
        if (node->parent == nullptr || is_red(node->child[0]) || is_red(node->child[1])) return -1;
        return left;
    }

private:
    struct ways {
        std::int64_t shortest, longest;
    };
    static constexpr std::int64_t ways_max = 256; // longer than any
    /// Leaves both in the mark, for paint().
    static ways measure(tree_node* top) noexcept {
        if (top == nullptr) return {0, 0};
        const ways left = measure(top->child[0]), right = measure(top->child[1]);
        const ways its{1 + std::min(left.shortest, right.shortest),
                       1 + std::max(left.longest, right.longest)};
        hf::lazy(top->mark) = its.longest * ways_max + its.shortest;
        return its;
    }
    static void paint(tree_node* top, std::int64_t blacks, bool may_be_red) noexcept {
        if (top == nullptr) return;
        const ways its{top->mark % ways_max, top->mark / ways_max};
        const bool can_be_black = its.longest <= 2 * blacks && blacks <= its.shortest;
        const bool is_black = can_be_black || !may_be_red;
        hf::lazy(top->mark) = is_black ? black : red;
        for (tree_node* child : top->child) paint(child, blacks - is_black, is_black);
    }

    static bool is_red(const tree_node* node) noexcept {
        return node != nullptr && node->mark == red;
    }

    // A black node is missing on 'side' of 'parent', and the sibling there has a red child: moves a
    // node of the sibling's side over.
    static void lend(tree_root& tree, tree_node* parent, tree_node* sibling,
                     unsigned side) noexcept {
        tree_node* far = sibling->child[1 - side];
        if (!is_red(far)) {
            tree_node* near = sibling->child[side];
            tree.rotate(sibling, 1 - side);
            far = sibling;
            sibling = near;
        }
        tree.rotate(parent, side);
        hf::lazy(sibling->mark) = parent->mark;
        hf::lazy(parent->mark) = black;
        hf::lazy(far->mark) = black;
    }
};

template <class Key, class Value> using rb_tree = search_tree<Key, Value, red_black>;

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
