// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// avl_tree<Key, Value>: an AVL tree under one reader-writer lock.
//
//   (1) The heights of a node's two sides differ by one at most; its mark is the right one less the
//       left one.
//
// What an operation costs: search_tree.hpp.
//
// Source: Adelson-Velsky and Landis 1962; STAMP's vacation runs on it (Clobber §5.1).
#pragma once

#include <structures/search_tree.hpp>

#include <holdfast/author/selective.hpp>

#include <algorithm>
#include <cstdint>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

struct avl {
    /// Rebalances above a leaf: it has made its side of the parent higher by one.
    static void inserted(tree_root& tree, tree_node* node) noexcept {
        for (; node->parent != nullptr; node = node->parent) {
            tree_node* parent = node->parent;
            const unsigned side = node->side();
            hf::lazy(parent->mark) += towards(side);
            if (parent->mark == 0) return;
            if (parent->mark == 2 * towards(side)) {
                lower(tree, parent, side);
                return;
            }
        }
    }

    /// Rebalances after the removal of a node: that side of 'node' is lower by one.
    static void erased(tree_root& tree, tree_node* node, unsigned side, std::int64_t) noexcept {
        while (node != nullptr) {
            tree_node* parent = node->parent;
            const unsigned side_of_parent = node->side();
            hf::lazy(node->mark) -= towards(side);
            if (node->mark == -towards(side)) return; // as high as before
            if (node->mark != 0 && !lower(tree, node, 1 - side)) return;
            node = parent;
            side = side_of_parent;
        }
    }

    /// Sets marks by the heights.
    static void restore(tree_root& tree) noexcept { (void)measured(tree.top); }

    /// The nodes on the longest way down, or -1.
    static int height(const tree_node* node, int left, int right) noexcept {
        const int lean = right - left;
        if (lean < -1 || lean > 1 || node->mark != lean) return -1;
        return 1 + (left > right ? left : right);
    }

private:
    static std::int64_t measured(tree_node* top) noexcept {
        if (top == nullptr) return 0;
        const std::int64_t left = measured(top->child[0]), right = measured(top->child[1]);
        hf::lazy(top->mark) = right - left;
        return 1 + std::max(left, right);
    }

    /// The mark of a node that is higher by one on that side.
    static constexpr std::int64_t towards(unsigned side) { return side == 0 ? -1 : 1; }

    // 'node' is higher by two on 'side': something from there takes its place. Whether all that
    // hangs there is lower than before by one; not so only when the child there is even, which
    // happens in erasures alone.
    static bool lower(tree_root& tree, tree_node* node, unsigned side) noexcept {
        const std::int64_t higher = towards(side);
        tree_node* child = node->child[side];
        if (child->mark == -higher) {
            tree_node* inner = child->child[1 - side];
            tree.rotate(child, side);
            tree.rotate(node, 1 - side);
            hf::lazy(node->mark) = inner->mark == higher ? -higher : 0;
            hf::lazy(child->mark) = inner->mark == -higher ? higher : 0;
            hf::lazy(inner->mark) = 0;
            return true;
        }
        tree.rotate(node, 1 - side);
        const bool was_even = child->mark == 0;
        hf::lazy(node->mark) = was_even ? higher : 0;
        hf::lazy(child->mark) = was_even ? -higher : 0;
        return !was_even;
    }
};

template <class Key, class Value> using avl_tree = search_tree<Key, Value, avl>;

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
