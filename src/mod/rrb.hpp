// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Relaxed radix balanced trees in MOD nodes: the tree under mod::vector.
// <holdfast/mod/detail/rrb_tree.hpp> has the parts that vectors of any element see; rrb_editor.cpp
// has the updates.
//
//   word {ref of the top, element count} ──> inner ──> … ──> inner ──> leaf
//
//   leaf     elements in a row, a power of two of them when full: about two lines
//   inner    16 refs, one line. Which child has an element follows from the element's number
//   relaxed  16 refs and where each child ends, two lines; bit 31 of a ref to it is set
//
// (1) In an inner node every child except the last is full. If concatenation or a slice leaves
//     another child that is not full, the node is relaxed; regular paths pay nothing for that.
// (2) The height of a tree whose top is not relaxed is the least that has room for its elements; a
//     relaxed node contains its height. So the whole version is one word, and there is no header to
//     copy: an element's write copies one leaf and one line per level, 6 lines at 1 M words.
// (3) A node does not contain its number of elements: its parent does, or the word. Elements of a
//     leaf past that number belong to nobody; refs of an inner node past its last child are 0.
// (4) A node that this shadow made is changed in place, any other is copied. Nodes with several
//     parents never count as the shadow's own: shadow::shared ensures that.
// (5) An edit that finds no room returns the word that it was given, and that tree can still be
//     read. Nodes of this shadow that the edit gave up are given back only when it is done
//     (give_up). What it changed in place is not among that word's elements.
//
// Alternatives that were weighed:
// - An 8-byte element stored in place, under the commit's word: snapshots would see it, and a crash
//   between both stores would keep half.
// - A journal of writes in the top: each of its entries costs its lines again when it is applied.
// - 32 refs a node: one level less, but 10 lines per write instead of 7.
// - A tail beside the tree: 4 lines per push_back instead of 7, but one more for every write, for
//   the node that names both.
// - Leaves of one line: as many lines, and another level.
//
// Source: Bagwell and Rompf 2011; Stucki et al., ICFP'15 (search step slack). Differs: count and
//         height are in the word, and leaves are smaller than nodes are wide.
#pragma once

#include <base/assert.hpp>

#include <holdfast/mod/detail/rrb_tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace hf::mod::detail::rrb {

/// 2^32 elements, one a leaf, need 8; slack of relaxed nodes never added more than 2 in tests.
inline constexpr unsigned height_max = 13;
/// How many nodes more than necessary a level may have beside a seam.
inline constexpr unsigned seam_slack = 2;

struct relaxed_node {
    ref child[fan];
    std::uint32_t ends[fan - 1]; // elements up to and with each child; the last one's is not kept
    std::uint8_t height;         // 1: children are leaves
    std::uint8_t children;
    std::uint16_t zero;
};
static_assert(sizeof(relaxed_node) == 128 && offsetof(relaxed_node, ends) == sizeof(inner_node));

/// A node as reclamation sees it: bits 0-3 its height, 4 whether it is relaxed, 5-30 the low bits
/// of its element count. Blobs have their own context.
struct node_context {
    static constexpr unsigned height_unknown = 15; // of a relaxed top, which contains it
    static constexpr std::uint32_t count_modulus = 1U << 26;
    static constexpr std::uint32_t of(branch node, unsigned height) noexcept {
        return height | (node.at >> 31) << 4 | (node.count & (count_modulus - 1)) << 5;
    }
    std::uint32_t bits;
    unsigned height() const noexcept { return bits & 15; }
    bool relaxed() const noexcept { return (bits & 16) != 0; }
    std::uint32_t count() const noexcept { return bits >> 5; }
};

/// Children of a relaxed node: the number that it names, within what is possible.
inline unsigned child_count(const relaxed_node& in) noexcept {
    return std::clamp<unsigned>(in.children, 1, fan);
}
/// Which child of a relaxed node holds an element.
inline unsigned find_child(const relaxed_node& in, std::uint32_t index, unsigned bits) noexcept {
    const unsigned last = child_count(in) - 1;
    // No earlier one: none is fuller.
    auto k = static_cast<unsigned>(std::min<std::uint64_t>(std::uint64_t{index} >> bits, last));
    while (k < last && in.ends[k] <= index) ++k;
    return k;
}

constexpr std::size_t node_bytes(leaf_form leaf, branch node, unsigned height) noexcept {
    return height == 0      ? leaf.bytes(node.count)
           : node.relaxed() ? sizeof(relaxed_node)
                            : sizeof(inner_node);
}

/// Reading a tree.
struct tree {
    leaf_form leaf;
    const std::byte* base;

    unsigned height_of(branch top) const noexcept {
        if (top.relaxed())
            return std::clamp<unsigned>(node_at<relaxed_node>(base, top.at)->height, 1, height_max);
        return top.count == 0 ? 0 : leaf.height_for(top.count);
    }

    /// A node's count as far as it can be.
    constexpr std::uint32_t bounded(std::uint64_t count, unsigned height) const noexcept {
        return static_cast<std::uint32_t>(std::min(count, leaf.capacity(height)));
    }

    /// Goes to the child with element 'index', and makes 'index' the element's number there.
    /// Returns which child.
    unsigned step(branch& node, unsigned height, std::uint32_t& index) const noexcept {
        HF_ASSERT_SLOW(height - 1 < height_max);
        const unsigned bits = leaf.bits_below(height - 1);
        unsigned k;
        if (!node.relaxed()) {
            k = static_cast<unsigned>(std::uint64_t{index} >> bits & (fan - 1));
            const auto before = static_cast<std::uint32_t>(std::uint64_t{k} << bits);
            index -= before;
            node.count = bounded(node.count - before, height - 1);
            node.at = node_at<inner_node>(base, node.at)->child[k];
            return k;
        }
        const auto& in = *node_at<relaxed_node>(base, node.at);
        k = find_child(in, index, bits);
        const std::uint32_t before = k > 0 ? in.ends[k - 1] : 0;
        const std::uint32_t end = k + 1 < rrb::child_count(in) ? in.ends[k] : node.count;
        index -= before;
        node = {in.child[k], bounded(end - before, height - 1)};
        return k;
    }

    unsigned child_count(branch node, unsigned height) const noexcept {
        if (node.relaxed()) return rrb::child_count(*node_at<relaxed_node>(base, node.at));
        const std::uint64_t last = std::max(node.count, 1U) - 1U;
        return static_cast<unsigned>(
                   std::min<std::uint64_t>(last >> leaf.bits_below(height - 1), fan - 1)) +
               1;
    }
    /// Elements of a leaf, children of another node.
    unsigned slots(branch node, unsigned height) const noexcept {
        return height == 0 ? bounded(node.count, 0) : child_count(node, height);
    }
    unsigned children(branch node, unsigned height, branch* to) const noexcept {
        HF_ASSERT(height - 1 < height_max);
        const unsigned n = child_count(node, height);
        // Its refs lie as inner_node's.
        const auto* in = node_at<relaxed_node>(
            base, node.at, node.relaxed() ? sizeof(relaxed_node) : sizeof(inner_node));
        std::uint32_t before = 0;
        for (unsigned k = 0; k < n; ++k) {
            const std::uint32_t end =
                k + 1 == n       ? node.count
                : node.relaxed() ? in->ends[k]
                                 : static_cast<std::uint32_t>((k + 1) * leaf.capacity(height - 1));
            to[k] = {in->child[k], bounded(end - before, height - 1)};
            before = end;
        }
        return n;
    }
};

} // namespace hf::mod::detail::rrb
