// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nodes of the B+tree under mod::ordered_map: what bplus_tree.hpp and the tree's kind share.
#pragma once

#include <holdfast/mod/detail/element.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::mod::detail {

extern const kind bplus_tree_kind;

namespace ordered {

inline constexpr ref leaf_bit = 0x8000'0000;
inline constexpr unsigned levels_max = 32;
inline constexpr std::uint32_t capacity_max = 255;
/// Contexts: an inner node's is its level, a leaf's this.
inline constexpr std::uint32_t leaf_context = 0x100;

/// The layout of a node: count, then keys, then values or children.
struct form : entry_layout<sizeof(std::uint32_t)> {
    bool is_leaf;
    std::uint32_t capacity; // entries of a full node: (3)

    constexpr form(slot_form key, slot_form value, bool leaf) noexcept
        : entry_layout{key, value}, is_leaf(leaf), capacity(leaf ? 1 : 4) {
        // A leaf has room for one entry at least, an inner node for several.
        const std::size_t wanted = leaf ? 256 : 128;
        while (capacity < capacity_max && bytes(capacity + 1) <= wanted) ++capacity;
    }
};
constexpr form leaf_form(slot_form key, slot_form value) noexcept { return {key, value, true}; }
constexpr form inner_form(slot_form key) noexcept {
    return {key, {sizeof(ref), alignof(ref), false}, false};
}
struct forms {
    form leaf, inner;
};

// [shape]
/// The shape of a root: bits 0-19 the key's slot, 20-39 the value's, 48-63 the order's identity.
constexpr std::uint64_t shape_of(slot_form key, slot_form value, std::uint16_t order) noexcept {
    return slot_shape(key) | slot_shape(value) << slot_shape_bits | std::uint64_t{order} << 48;
}
// [/shape]

inline std::uint64_t word_of(ref top, std::uint64_t count) noexcept { return top | count << 32; }
inline ref top_of(std::uint64_t word) noexcept { return static_cast<ref>(word); }
inline std::uint64_t size_of(std::uint64_t word) noexcept { return word >> 32; }

inline std::uint32_t count_of(const std::byte* node) noexcept {
    std::uint32_t count;
    std::memcpy(&count, node, sizeof count);
    return count;
}

/// A node with at least one entry, all of whose entries lie in the pool. A damaged node is replaced
/// by one without entries, and zeros behind that.
inline const std::byte* node_of(const form& of, const std::byte* base, ref node) noexcept {
    const std::byte* bytes = node_at<std::byte>(base, node);
    const std::uint32_t count = count_of(bytes);
    if (count - 1U >= of.capacity || !within(base, bytes, of.bytes(count))) [[unlikely]]
        return nowhere;
    return bytes;
}
inline bool is_leaf(ref node) noexcept { return (node & leaf_bit) != 0; }
inline std::uint32_t context_of(ref node, unsigned level) noexcept {
    return is_leaf(node) ? leaf_context : level;
}
inline const std::byte* key_place(const form& of, const std::byte* node, std::size_t i) noexcept {
    return node + of.keys() + i * of.key.bytes;
}
inline const std::byte* value_place(const form& of, const std::byte* node, std::size_t i) noexcept {
    return node + of.values(count_of(node)) + i * of.value.bytes;
}
inline ref child_at(const form& inner, const std::byte* node, std::size_t i) noexcept {
    ref child;
    std::memcpy(&child, value_place(inner, node, i), sizeof child);
    return child;
}

/// The way from the top to an entry.
struct way {
    std::array<ref, levels_max> node{};            // inner nodes
    std::array<std::uint16_t, levels_max> child{}; // the next child of each
    unsigned depth = 0;                            // inner nodes
    ref leaf = 0;                                  // 0: behind the last entry
    unsigned entry = 0;                            // in the leaf
    std::int64_t turns = 0;                        // to leaves farther on, minus those back
    bool damaged = false;                          // it met what is not a node: no leaf
    void break_off() noexcept {
        *this = {};
        damaged = true;
    }
};

/// The slots of an entry on its way into a node.
struct item {
    const std::byte* key;
    const std::byte* value;
};
/// Replaces 'erased' entries from the way's on by 'added', or by nothing. 'word' becomes the new
/// version's; it stays when the shadow fails. Returns whether it succeeded. Gives up what the
/// entries' slots name, except the key of an entry that 'added' replaces.
///
/// Requires: the way leads to an entry, or to the place for one; its leaf has 'erased' entries from
///           there on; with 'added', at most one.
bool change(shadow& to, std::uint64_t& word, const forms& of, const way& at, unsigned erased,
            const item* added);

} // namespace ordered

} // namespace hf::mod::detail
