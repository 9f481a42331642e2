// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tree under mod::vector as its templates see it: elements are bytes, which are found here and
// edited in the library. src/mod/rrb.hpp: the layout of the nodes, and their invariants.
#pragma once

#include <holdfast/mod/detail/element.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hf::mod::detail::rrb {

inline constexpr unsigned fan_bits = 4;
inline constexpr unsigned fan = 1U << fan_bits;
inline constexpr ref relaxed_bit = ~ref_max;
/// Elements of a vector, at most.
inline constexpr std::uint32_t count_max = ~std::uint32_t{0};

struct inner_node {
    ref child[fan]; // 0: none
};
static_assert(sizeof(inner_node) == 64);

/// The layout of elements in leaves.
struct leaf_form {
    std::uint32_t element_bytes;
    bool holds_refs;
    std::uint8_t bits; // log2 of a full leaf's elements

    static constexpr leaf_form of(slot_form each) noexcept {
        const std::uint32_t bytes = std::max<std::uint32_t>(1, each.bytes);
        const std::uint32_t wanted = each.holds_ref ? 64 : 128;
        const int fit = bytes >= wanted ? 0 : std::bit_width(wanted / bytes) - 1;
        return {bytes, each.holds_ref, static_cast<std::uint8_t>(fit)};
    }
    constexpr std::uint32_t capacity() const noexcept { return 1U << bits; }
    constexpr std::size_t bytes_of(std::uint32_t count) const noexcept {
        return std::size_t{count} * element_bytes;
    }
    /// Bytes of a leaf with so many elements: it has room for the next power of two.
    constexpr std::size_t bytes(std::uint32_t count) const noexcept {
        const std::size_t least = std::size_t{std::bit_ceil(count)} * element_bytes;
        return (least + granule_bytes - 1) / granule_bytes * granule_bytes;
    }
    /// log2 of the most elements below a node.
    constexpr unsigned bits_below(unsigned height) const noexcept {
        return bits + fan_bits * height;
    }
    constexpr std::uint64_t capacity(unsigned height) const noexcept {
        return std::uint64_t{1} << bits_below(height);
    }
    /// The height of a tree of so many elements whose top is not relaxed.
    constexpr unsigned height_for(std::uint32_t count) const noexcept {
        const auto wanted = static_cast<unsigned>(std::bit_width(count - 1));
        return wanted <= bits ? 0 : (wanted - bits + fan_bits - 1) / fan_bits;
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

/// A leaf, and which elements of the vector it has.
struct leaf_place {
    const std::byte* elements;
    std::uint32_t first, last;
};
/// The leaf of an element. Requires: index < the vector's size.
leaf_place leaf_at(leaf_form leaf, const std::byte* base, std::uint64_t word,
                   std::uint32_t index) noexcept;

/// An element, in any tree. Requires: index < the vector's size.
const std::byte* element_anywhere(leaf_form leaf, const std::byte* base, std::uint64_t word,
                                  std::uint32_t index) noexcept;
/// The same: finds its way by itself as long as nodes are regular and lie in the pool.
template <leaf_form Leaf>
const std::byte* element_at(const std::byte* base, std::uint64_t word,
                            std::uint32_t index) noexcept {
    const branch top = top_of(word);
    assert(index < top.count);
    // Leaves may be short: a node without room for all elements is checked closely.
    constexpr std::size_t node_bytes =
        std::max<std::size_t>(sizeof(inner_node), Leaf.bytes_of(Leaf.capacity()));
    if (top.relaxed() || node_bytes > 4096) return element_anywhere(Leaf, base, word, index);
    const ref last = last_ref(base, node_bytes);
    unsigned bits = Leaf.bits_below(Leaf.height_for(top.count));
    for (ref at = top.at; at <= last;) {
        if (bits <= Leaf.bits)
            return bounded_node<std::byte>(base, at) + Leaf.bytes_of(index & (Leaf.capacity() - 1));
        bits -= fan_bits;
        const auto* node = bounded_node<inner_node>(base, at);
        at = node->child[std::uint64_t{index} >> bits & (fan - 1)];
    }
    return element_anywhere(Leaf, base, word, index);
}

/// Edits: functions from a word to the next version's. Once the shadow has failed, they return the
/// word that they were given. Requires of all: indices within the vector.
class editor {
public:
    using word = std::uint64_t;
    editor(leaf_form leaf, shadow& to) noexcept : leaf_(leaf), to_(&to) {}

    /// Cost: one leaf and one line per level.
    word set(word in, std::uint32_t index, const std::byte* element);
    /// The same, if what the old element named has its place elsewhere.
    word put(word in, std::uint32_t index, const std::byte* element);
    /// Adds elements behind the last one.
    word extend(word in, const std::byte* from, std::uint32_t count);
    /// The first 'count' elements.
    word take(word in, std::uint32_t count);
    /// The elements from 'first' to before 'last'.
    word slice(word in, std::uint32_t first, std::uint32_t last);
    word insert(word in, std::uint32_t index, const std::byte* from, std::uint32_t count);
    word erase(word in, std::uint32_t first, std::uint32_t last);
    /// Adds another tree's elements, or this one's own, behind the last one. Cost: O(log n).
    word append(word in, word other);
    word clear(word in);

private:
    class edit;
    struct given {
        ref node;
        std::uint32_t context;
    };
    leaf_form leaf_;
    ref roomy_ = 0; // a leaf of this shadow with room for a full leaf's elements
    shadow* to_;
    std::vector<given> given_up_; // this shadow's nodes (5)
};

} // namespace hf::mod::detail::rrb
