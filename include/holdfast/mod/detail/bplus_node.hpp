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
/// Contexts: an inner node's is its level, a leaf's this.
inline constexpr std::uint32_t leaf_context = 0x100;

/// Where things are in a node: count, then keys, then seconds.
struct form {
    slot_form key;
    slot_form second;
    bool is_leaf;

    static constexpr std::size_t aligned(std::size_t bytes, std::size_t to) noexcept {
        return (bytes + to - 1) & ~(to - 1);
    }
    constexpr std::size_t keys() const noexcept {
        return aligned(sizeof(std::uint32_t), key.align);
    }
    constexpr std::size_t seconds(std::size_t count) const noexcept {
        return aligned(keys() + count * key.bytes, second.align);
    }
    constexpr std::size_t bytes(std::size_t count) const noexcept {
        return seconds(count) + count * second.bytes;
    }
    /// Entries of a full node: (3). A leaf may have one, an inner node must have some.
    constexpr unsigned capacity() const noexcept {
        const std::size_t wanted = is_leaf ? 256 : 128;
        unsigned count = is_leaf ? 1 : 4;
        while (count < 255 && bytes(count + 1) <= wanted) ++count;
        return count;
    }
};
constexpr form leaf_form(slot_form key, slot_form value) noexcept { return {key, value, true}; }
constexpr form inner_form(slot_form key) noexcept {
    return {key, {sizeof(ref), alignof(ref), false}, false};
}

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

/// The way from the top to an entry.
struct way {
    std::array<ref, levels_max> node{};            // inner nodes
    std::array<std::uint16_t, levels_max> child{}; // of each, the one that is next
    unsigned depth = 0;                            // inner nodes
    ref leaf = 0;                                  // 0: behind the last entry
    unsigned entry = 0;                            // in the leaf
    std::int64_t turns = 0;                        // to leaves farther on, less those back
    bool damaged = false;                          // it led to what is no node: no leaf
    void break_off() noexcept {
        *this = {};
        damaged = true;
    }
};

} // namespace ordered

} // namespace hf::mod::detail
