// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The nodes of the hash trie under mod::map and mod::set: four bits of the key's hash choose a
// child at each level.                                             Source: MOD §4.1, M2.
//
// A root's word is {ref of the top node (low 32 bits), elements (high 32)}; ref 0: empty.
//
// (1) An inner node is one line: 16 refs, 0 for no child. Bit 31 of a ref marks a leaf.
// (2) A leaf has 1 to 7 entries (fewer when they are big) of any hashes that lead to it: a head
//     {count, a tag for each}, then all keys, then all values, in the smallest node that holds
//     them. A tag is the top eight bits of a hash, so most other keys are ruled out without a look
//     at them.
// (3) After 16 levels the hash is used up. Leaves there may be wide: head {0xff, 0, 0, 0, count},
//     any number of entries, all of one hash.
// (4) An inner node does not have a single leaf only, nor only leaves whose entries would fill half
//     of one leaf: erasing merges what insertions split.
// (5) Updates only read until they know what to do; then they copy the way down, parents before
//     children, and link last. A shadow that failed half-way still holds the old trie.
//
// Differs from the compressed tries (CHAMP) that MOD uses. Those keep small tries small: a node is
// a bitmap and just its existing children. At 32 children such an inner node is up to five lines,
// and an update copies all of it. Here a level costs one line and no bitmap arithmetic. Leaves of
// several entries make up for the empty slots: without them most inner nodes would stand over two
// keys. Entries of 8 + 32 bytes: an insertion flushes 7.0 lines at 1 M of them, at most 8.7 from 1
// k to 4 M; an entry takes 45 to 52 bytes. With leaves of 3 at most: 6.9 to 7.8 lines, 53 to 58
// bytes.
#pragma once

#include <holdfast/mod/detail/element.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hf::mod::detail {

inline constexpr unsigned trie_levels = 16;
inline constexpr unsigned leaf_entries_max = 7;
inline constexpr std::size_t leaf_bytes_wanted = 320; // a leaf of one entry may be larger
inline constexpr ref leaf_bit = 0x8000'0000;
inline constexpr std::uint8_t wide_mark = 0xff;
/// Contexts: an inner node's is its level, a leaf's this bit and its level.
inline constexpr std::uint32_t leaf_context = 0x100;

/// (1)
struct inner {
    ref child[16];
};
static_assert(sizeof(inner) == 64);

/// (2): the layout of a leaf. Reclamation computes with it, too, from a root's shape.
struct leaf_layout : entry_layout<sizeof(std::uint64_t)> {
    constexpr unsigned capacity() const noexcept {
        const std::size_t entry = std::max<std::size_t>(key.bytes + value.bytes, 1);
        const std::size_t fitting = (leaf_bytes_wanted - sizeof(std::uint64_t)) / entry;
        return static_cast<unsigned>(std::clamp<std::size_t>(fitting, 1, leaf_entries_max));
    }
};

/// The shape of a trie's root.
/// bits 0-19: the key's slot; 20-39: the value's; 40: a set; 41: the values are in the keys' blobs;
/// 48-63: the hash's identity.
struct trie_shape {
    leaf_layout layout;
    bool is_set;
    bool values_in_keys;
    std::uint16_t hash;

    constexpr std::uint64_t bits() const noexcept {
        return slot_shape(layout.key) | slot_shape(layout.value) << slot_shape_bits |
               std::uint64_t{is_set} << 40 | std::uint64_t{values_in_keys} << 41 |
               std::uint64_t{hash} << 48;
    }
    static constexpr leaf_layout layout_of(std::uint64_t bits) noexcept {
        return {{slot_of_shape(bits), slot_of_shape(bits >> slot_shape_bits)}};
    }
};

extern const kind hash_trie_kind;
extern const kind cache_kind; // the same nodes; values begin with a head (mod/cache.cpp)

/// A leaf's head as a number: byte 0 the count, byte i + 1 the tag of entry i.
struct leaf_head {
    std::uint64_t bits;

    static leaf_head of(const std::byte* leaf) noexcept {
        leaf_head head;
        std::memcpy(&head.bits, leaf, sizeof head.bits);
        return head;
    }
    static leaf_head wide(std::uint32_t count) noexcept {
        return {wide_mark | std::uint64_t{count} << 32};
    }
    void put(std::byte* leaf) const noexcept { std::memcpy(leaf, &bits, sizeof bits); }
    bool is_wide() const noexcept { return (bits & 0xff) == wide_mark; }
    std::uint32_t count() const noexcept {
        return static_cast<std::uint32_t>(is_wide() ? bits >> 32 : bits & 0xff);
    }
    std::uint64_t tag(unsigned index) const noexcept { return bits >> (8 * index + 8) & 0xff; }
    void set_tag(unsigned index, std::uint64_t tag) noexcept {
        const unsigned shift = 8 * index + 8;
        bits = (bits & ~(std::uint64_t{0xff} << shift)) | tag << shift;
    }
    /// The head with one more entry.
    leaf_head with(std::uint64_t tag) const noexcept {
        leaf_head grown{bits + 1};
        grown.set_tag(static_cast<unsigned>(bits & 0xff), tag);
        return grown;
    }
    /// The head without entry 'index', which the last entry replaces.
    leaf_head without(unsigned index) const noexcept {
        leaf_head shrunk{bits - 1};
        shrunk.set_tag(index, tag(static_cast<unsigned>(shrunk.bits & 0xff)));
        return shrunk;
    }
    /// Bit 7 of byte i + 1 for each entry i that may have this tag, and certainly for those that
    /// have it. Not for wide leaves.
    std::uint64_t candidates(std::uint64_t tag) const noexcept {
        constexpr std::uint64_t ones = 0x0101'0101'0101'0101;
        const std::uint64_t differing = bits ^ tag * ones;
        const std::uint64_t equal = (differing - ones) & ~differing & ones << 7;
        return equal & (~std::uint64_t{0} >> ((56 - 8 * (bits & 0xff)) & 63)) &
               ~std::uint64_t{0xff};
    }
};

inline std::uint64_t tag_of(std::uint64_t hash) noexcept { return hash >> 56; }
inline unsigned digit_of(std::uint64_t hash, unsigned level) noexcept {
    return static_cast<unsigned>(hash >> (4 * level) & 15);
}
/// Makes every bit depend on every other; loses none.
inline std::uint64_t mixed(std::uint64_t bits) noexcept {
    bits = (bits ^ bits >> 32) * 0x9e37'79b9'7f4a'7c15;
    bits = (bits ^ bits >> 29) * 0xd1b5'4a32'd192'ed03;
    return bits ^ bits >> 32;
}

inline std::uint64_t word_of(ref top, std::uint64_t count) noexcept { return top | count << 32; }
inline ref top_of(std::uint64_t word) noexcept { return static_cast<ref>(word); }
inline std::size_t count_of(std::uint64_t word) noexcept { return word >> 32; }

/// Whether it leads to an inner node in the pool; 'last' is the last_ref of those.
inline bool is_inner(ref at, ref last) noexcept { return at - 1U < last; }

/// The way from the top to the place of a hash: inner nodes, then a leaf or none.
class trie_way {
public:
    trie_way() noexcept = default;
    trie_way(const std::byte* base, ref top, std::uint64_t hash) noexcept : digits_(hash) {
        descend(base, top);
    }
    unsigned depth() const noexcept { return depth_; }
    /// Whether it is longer than any way, or leads out of the pool: then it has no leaf.
    bool damaged() const noexcept { return damaged_; }
    ref leaf() const noexcept { return leaf_; } // 0: none
    ref inner_at(unsigned level) const noexcept { return inner_[level]; }
    unsigned digit(unsigned level) const noexcept { return digit_of(digits_, level); }

    /// Moves on to the next leaf in the order of hashes. False: that was the last one.
    bool next(const std::byte* base) noexcept {
        while (depth_ > 0) {
            const auto* node = bounded_node<inner>(base, inner_[depth_ - 1]);
            for (unsigned d = digit(depth_ - 1) + 1; d < 16; ++d)
                if (node->child[d] != 0) {
                    set_digit(depth_ - 1, d);
                    first_below(base, node->child[d]);
                    return true;
                }
            --depth_;
        }
        leaf_ = 0;
        return false;
    }
    /// The first leaf of a trie.
    void first(const std::byte* base, ref top) noexcept {
        depth_ = 0;
        first_below(base, top);
    }

    /// Lets the way end at an inner node's place. The caller gives up what was below.
    void cut(unsigned depth) noexcept { depth_ = depth; }
    /// Makes the inner nodes of the way writable: copies those that the shadow did not make.
    void open(shadow& to);
    /// Puts 'below' at the way's end. Returns the new top. Requires: open() did not fail.
    ref link(shadow& to, ref below) noexcept;

private:
    void descend(const std::byte* base, ref at) noexcept {
        if (at == 0) return; // perhaps of no pool
        for (const ref last = last_ref(base, sizeof(inner)); is_inner(at, last); ++depth_) {
            if (depth_ == trie_levels) [[unlikely]]
                return break_off();
            inner_[depth_] = at;
            at = bounded_node<inner>(base, at)->child[digit(depth_)];
        }
        end_at(at);
    }
    void first_below(const std::byte* base, ref at) noexcept {
        if (at == 0 || (at & leaf_bit) != 0) { // needs no bound: there may be no pool
            leaf_ = at;
            return;
        }
        for (const ref last = last_ref(base, sizeof(inner)); is_inner(at, last);) {
            if (depth_ == trie_levels) [[unlikely]]
                return break_off();
            const auto* node = bounded_node<inner>(base, at);
            unsigned d = 0;
            while (d < 15 && node->child[d] == 0) ++d;
            set_digit(depth_, d);
            inner_[depth_++] = at;
            at = node->child[d];
            fetch_children(base, *node);
        }
        end_at(at);
    }
    void end_at(ref at) noexcept {
        if (at != 0 && (at & leaf_bit) == 0) [[unlikely]]
            return break_off();
        leaf_ = at;
    }
    void break_off() noexcept {
        depth_ = 0;
        leaf_ = 0;
        damaged_ = true;
    }
    // The children lie anywhere: waiting for them one by one would be most of the cost of a walk.
    static void fetch_children(const std::byte* base, const inner& node) noexcept {
        for (const ref child : node.child)
            if (child != 0) fetch(base, child);
    }
    void set_digit(unsigned level, unsigned digit) noexcept {
        digits_ = (digits_ & ~(std::uint64_t{15} << (4 * level))) | std::uint64_t{digit}
                                                                        << (4 * level);
    }

    std::array<ref, trie_levels> inner_{};
    std::uint64_t digits_ = 0;
    unsigned depth_ = 0;
    unsigned opened_ = 0; // inner nodes from here on are copies that nothing names yet
    ref leaf_ = 0;
    bool damaged_ = false;
};

} // namespace hf::mod::detail
