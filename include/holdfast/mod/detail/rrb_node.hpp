// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Relaxed radix balanced trees in MOD nodes: what mod::vector is made of.
//
//   word {ref of the top, element count} ──> inner ──> … ──> inner ──> leaf
//
//   leaf     elements in a row, a power of two of them when full: about two lines
//   inner    16 refs, one line. Which child has an element follows from the element's number
//   relaxed  16 refs and where each child ends, two lines; bit 31 of a ref to it is set
//
// (1) In an inner node every child but the last is full. Where concatenation or a slice leaves
//     another one, the node is relaxed; regular paths pay nothing for that.
// (2) The height of a tree whose top is not relaxed is the least that has room for its elements; a
//     relaxed node knows its height. So the whole version is one word, and there is no header to
//     copy: an element's write copies one leaf and one line per level, 6 lines at 1 M words.
// (3) A node does not know how many elements it has: its parent does, or the word. Elements of a
//     leaf past that number are nobody's; refs of an inner node past its last child are 0.
// (4) A node that this shadow made is changed in place, any other is copied. Nodes with several
//     parents are never the shadow's own: shadow::shared sees to it.
// (5) An edit that finds no room returns the word it was given, and that tree can be read: nodes
//     of this shadow that it gave up are given back when it is done (give_up), and what it changed
//     in place is not among that word's elements.
//
// Weighed: storing an 8-byte element in place, under the commit's word: snapshots would see it, and
// a crash between both stores would keep half. A journal of writes in the top: each of its entries
// costs its lines again when it is carried out. 32 refs a node: one level less, but 10 lines per
// write for 7. A tail beside the tree: 4 lines per push_back for 7, but one more for every write,
// for the node that names both. Leaves of one line: as many lines, another level.
//
// Source: Bagwell and Rompf 2011; Stucki et al., ICFP'15 (search step slack). Differs: count and
// height are in the word, and leaves are smaller than nodes are wide.
#pragma once

#include <holdfast/mod/detail/element.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::mod::detail::rrb {

inline constexpr unsigned fan_bits = 4;
inline constexpr unsigned fan = 1U << fan_bits;
inline constexpr ref relaxed_bit = ~ref_max;
/// 2^32 elements, one a leaf, need 8; slack of relaxed nodes never added more than 2 in tests.
inline constexpr unsigned height_max = 13;
/// How many nodes more than necessary a level may have beside a seam.
inline constexpr unsigned seam_slack = 2;
/// Elements of a vector, at most.
inline constexpr std::uint32_t count_max = ~std::uint32_t{0};

struct inner_node {
    ref child[fan]; // 0: none
};
struct relaxed_node {
    ref child[fan];
    std::uint32_t ends[fan - 1]; // elements up to and with each child; the last one's is not kept
    std::uint8_t height;         // 1: children are leaves
    std::uint8_t children;
    std::uint16_t zero;
};
static_assert(sizeof(inner_node) == 64 && sizeof(relaxed_node) == 128);
static_assert(offsetof(relaxed_node, ends) == sizeof(inner_node));

/// How elements lie in leaves.
struct leaf_form {
    std::uint32_t element_bytes;
    bool holds_refs;

    constexpr unsigned bits() const noexcept {
        const std::uint32_t wanted = holds_refs ? 64 : 128;
        return element_bytes >= wanted
                   ? 0
                   : static_cast<unsigned>(std::bit_width(wanted / element_bytes)) - 1;
    }
    constexpr std::uint32_t capacity() const noexcept { return 1U << bits(); }
    /// Of a leaf with so many elements: room for the next power of two.
    constexpr std::size_t bytes(std::uint32_t count) const noexcept {
        const std::size_t least = std::size_t{std::bit_ceil(count)} * element_bytes;
        return (least + granule_bytes - 1) / granule_bytes * granule_bytes;
    }
    /// log2 of the most elements below a node.
    constexpr unsigned bits_below(unsigned height) const noexcept {
        return bits() + fan_bits * height;
    }
    constexpr std::uint64_t capacity(unsigned height) const noexcept {
        return std::uint64_t{1} << bits_below(height);
    }
    /// (2)
    constexpr unsigned height_for(std::uint32_t count) const noexcept {
        const auto wanted = static_cast<unsigned>(std::bit_width(count - 1));
        return wanted <= bits() ? 0 : (wanted - bits() + fan_bits - 1) / fan_bits;
    }
};

/// A node as its parent knows it.
struct branch {
    ref at = 0;
    std::uint32_t count = 0; // of elements

    bool relaxed() const noexcept { return (at & relaxed_bit) != 0; }
};
inline branch top_of(std::uint64_t word) noexcept {
    return {static_cast<ref>(word), static_cast<std::uint32_t>(word >> 32)};
}
inline std::uint64_t word_of(branch top) noexcept {
    return std::uint64_t{top.count} << 32 | top.at;
}

/// What reclamation is told of a node: bits 0-3 its height, 4 whether it is relaxed, 5-30 the low
/// bits of its element count. Blobs have their own.
struct node_context {
    static constexpr unsigned height_unknown = 15; // of a relaxed top: it knows itself
    static constexpr std::uint32_t count_modulus = 1U << 26;
    static constexpr std::uint32_t of(branch node, unsigned height) noexcept {
        return height | (node.at >> 31) << 4 | (node.count & (count_modulus - 1)) << 5;
    }
    std::uint32_t bits;
    unsigned height() const noexcept { return bits & 15; }
    bool relaxed() const noexcept { return (bits & 16) != 0; }
    std::uint32_t count() const noexcept { return bits >> 5; }
};

/// Children that a relaxed node has: what it says, as far as that can be.
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

/// A leaf, and which elements of the vector it has.
struct leaf_place {
    const std::byte* elements;
    std::uint32_t first, last;
};

/// Reading a tree.
template <leaf_form Leaf> struct tree_of {
    static unsigned height_of(const std::byte* base, branch top) noexcept {
        if (top.relaxed())
            return std::clamp<unsigned>(node_at<relaxed_node>(base, top.at)->height, 1, height_max);
        return top.count == 0 ? 0 : Leaf.height_for(top.count);
    }

    /// Requires: index < the vector's size.
    static const std::byte* element(const std::byte* base, std::uint64_t word,
                                    std::uint32_t index) noexcept {
        const branch top = top_of(word);
        assert(index < top.count);
        // Leaves may be short: where a node has no room for all, it is looked at closely.
        constexpr std::size_t node_bytes =
            std::max<std::size_t>(sizeof(inner_node), Leaf.capacity() * Leaf.element_bytes);
        if (top.relaxed() || node_bytes > 4096) return element_anywhere(base, word, index);
        const ref last = last_ref(base, node_bytes);
        unsigned bits = Leaf.bits_below(Leaf.height_for(top.count));
        for (ref at = top.at; at <= last;) {
            if (bits <= Leaf.bits())
                return bounded_node<std::byte>(base, at) +
                       std::size_t{index & (Leaf.capacity() - 1)} * Leaf.element_bytes;
            bits -= fan_bits;
            const auto* node = bounded_node<inner_node>(base, at);
            at = node->child[std::uint64_t{index} >> bits & (fan - 1)];
        }
        return element_anywhere(base, word, index);
    }
    [[gnu::noinline]] static const std::byte*
    element_anywhere(const std::byte* base, std::uint64_t word, std::uint32_t index) noexcept {
        const branch top = top_of(word);
        ref at = top.at;
        unsigned bits = Leaf.bits_below(height_of(base, top));
        while (bits > Leaf.bits()) {
            bits -= fan_bits;
            if ((at & relaxed_bit) == 0) {
                at = node_at<inner_node>(base, at)->child[std::uint64_t{index} >> bits & (fan - 1)];
                continue;
            }
            const auto& node = *node_at<relaxed_node>(base, at);
            index &= static_cast<std::uint32_t>((std::uint64_t{fan} << bits) - 1);
            const unsigned k = find_child(node, index, bits);
            if (k > 0) index -= node.ends[k - 1];
            at = node.child[k];
        }
        const std::size_t within_leaf =
            std::size_t{index & (Leaf.capacity() - 1)} * Leaf.element_bytes;
        const std::byte* leaf = node_at<std::byte>(base, at, within_leaf + Leaf.element_bytes);
        return leaf + within_leaf;
    }
    /// A node's count as far as it can be.
    static constexpr std::uint32_t bounded(std::uint64_t count, unsigned height) noexcept {
        return static_cast<std::uint32_t>(std::min(count, Leaf.capacity(height)));
    }

    /// Goes to the child that has element 'index' and makes that its number there. Returns which.
    static unsigned step(const std::byte* base, branch& node, unsigned height,
                         std::uint32_t& index) noexcept {
        const unsigned bits = Leaf.bits_below(height - 1);
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

    /// Requires: index < the vector's size.
    static leaf_place leaf(const std::byte* base, std::uint64_t word,
                           std::uint32_t index) noexcept {
        const branch top = top_of(word);
        assert(index < top.count);
        branch at = top;
        std::uint32_t inside = index;
        for (unsigned height = height_of(base, at); height > 0; --height) {
            const ref* refs = node_at<inner_node>(base, at.at)->child;
            const unsigned k = step(base, at, height, inside);
            if (height > 1 || k + 1 == fan) continue;
            // Who iterates comes to the next leaf soon.
            fetch(base, refs[k + 1]);
            fetch(base, refs[k + 1], 1);
        }
        const std::byte* elements =
            node_at<std::byte>(base, at.at, std::size_t{at.count} * Leaf.element_bytes);
        if (inside >= at.count || at.count > Leaf.capacity())
            [[unlikely]] // damaged: this one alone
            return {nowhere, index, index + 1};
        const std::uint32_t first = index - inside;
        // An edit that found no room may have left the leaf with more (5).
        return {elements, first, std::min(first + at.count, top.count)};
    }

    static unsigned child_count(const std::byte* base, branch node, unsigned height) noexcept {
        if (node.relaxed()) return rrb::child_count(*node_at<relaxed_node>(base, node.at));
        const std::uint64_t last = std::max(node.count, 1U) - 1U;
        return static_cast<unsigned>(
                   std::min<std::uint64_t>(last >> Leaf.bits_below(height - 1), fan - 1)) +
               1;
    }
    /// Elements of a leaf, children of another node.
    static unsigned slots(const std::byte* base, branch node, unsigned height) noexcept {
        return height == 0 ? bounded(node.count, 0) : child_count(base, node, height);
    }
    static unsigned children(const std::byte* base, branch node, unsigned height,
                             branch* to) noexcept {
        const unsigned n = child_count(base, node, height);
        // Its refs lie as inner_node's.
        const auto* in = node_at<relaxed_node>(
            base, node.at, node.relaxed() ? sizeof(relaxed_node) : sizeof(inner_node));
        std::uint32_t before = 0;
        for (unsigned k = 0; k < n; ++k) {
            const std::uint32_t end =
                k + 1 == n       ? node.count
                : node.relaxed() ? in->ends[k]
                                 : static_cast<std::uint32_t>((k + 1) * Leaf.capacity(height - 1));
            to[k] = {in->child[k], bounded(end - before, height - 1)};
            before = end;
        }
        return n;
    }
    static constexpr std::size_t node_bytes(branch node, unsigned height) noexcept {
        return height == 0      ? Leaf.bytes(node.count)
               : node.relaxed() ? sizeof(relaxed_node)
                                : sizeof(inner_node);
    }
};

} // namespace hf::mod::detail::rrb
