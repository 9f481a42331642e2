// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hash trie under mod::map and mod::set: four bits of the key's hash choose a child at each
// level.                                                                    Source: MOD §4.1, M2.
//
// A root's word is {ref of the top node (low 32 bits), elements (high 32)}; ref 0: empty.
//
// (1) An inner node is one line: 16 refs, 0 for no child. Bit 31 of a ref marks a leaf.
// (2) A leaf has 1 to 7 entries (fewer when they are big) of any hash that leads to it: a head
//     {count, a tag for each}, then all keys, then all values, in a node that just holds them. Tags
//     are the top eight bits of the hashes, so most foreign keys are told apart without a look.
// (3) After 16 levels the hash is used up. Leaves there may be wide: head {0xff, 0, 0, 0, count},
//     any number of entries, all of one hash.
// (4) No inner node has nothing but leaves whose entries would fill half of one leaf, nor a single
//     leaf: what insertions split, erasing merges.
// (5) Updates only read until they know what to do; then they copy the way down, parents before
//     children, and link last. A shadow that failed half-way still holds the old trie.
//
// Differs from the compressed tries (CHAMP) that MOD took over. Those keep small tries small by
// nodes of a bitmap and just the children there are; at 32 children an inner node is up to five
// lines, and an update copies all of it. Here a level costs one line and no bitmap arithmetic; the
// empty slots are paid back by leaves of several entries, without which most inner nodes would
// stand over two keys. Entries of 8 + 32 bytes: an insertion flushes 7.0 lines at 1 M of them, 8.7
// at most from 1 k to 4 M; an entry takes 45 to 52 bytes. With leaves of 3 at most: 6.9 to 7.8
// lines, 53 to 58 bytes.
#pragma once

#include <holdfast/mod/detail/element.hpp>
#include <holdfast/mod/detail/entry.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hf::mod {

namespace detail {
/// XXH3 of these bytes: durable, the same everywhere.
std::uint64_t hash_bytes(const void* bytes, std::size_t count) noexcept;
} // namespace detail

/// The hash of keys unless another is given. Its results are part of the pool's format, as must be
/// those of any other: a function of the key's value only, the same in every program and build.
///
/// Another may have `static constexpr std::uint16_t identity` (2 or more): a pool made with one
/// identity is not opened with another. And `using is_avalanching = void`, when all its bits are
/// good; else they are mixed.
template <class T> struct hash {
    static_assert(std::has_unique_object_representations_v<T>,
                  "equal keys must have equal bytes: give mod::map a hash for this type");
    static constexpr std::uint16_t identity = 1;
    std::uint64_t operator()(const T& key) const noexcept {
        if constexpr (sizeof(T) <= sizeof(std::uint64_t)) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &key, sizeof key);
            return bits;
        } else {
            return detail::hash_bytes(&key, sizeof key);
        }
    }
};
template <> struct hash<std::string> {
    static constexpr std::uint16_t identity = 1;
    using is_transparent = void;
    using is_avalanching = void;
    std::uint64_t operator()(std::string_view key) const noexcept {
        return detail::hash_bytes(key.data(), key.size());
    }
};

/// The comparison of keys unless another is given: ==, or that of the bytes where there is none.
template <class T> struct equal_to {
    bool operator()(const T& a, const T& b) const noexcept {
        if constexpr (std::equality_comparable<T>) return a == b;
        else return std::memcmp(&a, &b, sizeof a) == 0;
    }
};
template <> struct equal_to<std::string> {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const noexcept { return a == b; }
};

namespace detail {

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

/// (2): where things are in a leaf. Also what reclamation computes with, from a root's shape.
struct leaf_layout {
    slot_form key;
    slot_form value;

    static constexpr std::size_t aligned(std::size_t bytes, std::size_t to) noexcept {
        return (bytes + to - 1) & ~(to - 1);
    }
    constexpr std::size_t keys() const noexcept {
        return aligned(sizeof(std::uint64_t), key.align);
    }
    constexpr std::size_t values(std::size_t count) const noexcept {
        return aligned(keys() + count * key.bytes, value.align);
    }
    constexpr std::size_t bytes(std::size_t count) const noexcept {
        return values(count) + count * value.bytes;
    }
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
        return {slot_of_shape(bits), slot_of_shape(bits >> slot_shape_bits)};
    }
};

extern const kind hash_trie_kind;

/// The value of a set's key.
struct nothing {};

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
    /// The head with one entry more.
    leaf_head with(std::uint64_t tag) const noexcept {
        leaf_head grown{bits + 1};
        grown.set_tag(static_cast<unsigned>(bits & 0xff), tag);
        return grown;
    }
    /// The head without entry 'index', in whose place the last one comes.
    leaf_head without(unsigned index) const noexcept {
        leaf_head shrunk{bits - 1};
        shrunk.set_tag(index, tag(static_cast<unsigned>(shrunk.bits & 0xff)));
        return shrunk;
    }
    /// Bit 7 of byte i + 1 for each entry i that may have this tag; those that have it are among
    /// them. Not for wide leaves.
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

/// Whether it leads to an inner node in the pool; with the last_ref of those.
inline bool is_inner(ref at, ref last) noexcept { return at - 1U < last; }

/// The way from the top to the place of a hash: inner nodes, then a leaf or none.
class trie_way {
public:
    trie_way() noexcept = default;
    trie_way(const std::byte* base, ref top, std::uint64_t hash) noexcept : digits_(hash) {
        descend(base, top);
    }
    unsigned depth() const noexcept { return depth_; }
    /// Whether it is longer than a way can be, or leads out of the pool: then it has no leaf.
    bool damaged() const noexcept { return damaged_; }
    ref leaf() const noexcept { return leaf_; } // 0: none
    ref inner_at(unsigned level) const noexcept { return inner_[level]; }
    unsigned digit(unsigned level) const noexcept { return digit_of(digits_, level); }

    /// On to the next leaf in the order of hashes. False: that was the last one.
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

    /// Lets the way end at an inner node's place. What was below is given up by the caller.
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
        if (at == 0 || (at & leaf_bit) != 0) { // no limit is needed, nor perhaps there
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
    // They lie anywhere: waited for one by one, they are most of what walking over all costs.
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

inline void trie_way::open(shadow& to) {
    opened_ = 0;
    while (opened_ < depth_ && to.fresh(inner_[opened_])) ++opened_; // so are their parents
    for (unsigned level = opened_; level < depth_; ++level) {
        const ref old = inner_[level];
        const ref copy = to.make(sizeof(inner));
        if (copy == 0) return;
        std::memcpy(to.at<inner>(copy), to.at<inner>(old), sizeof(inner));
        to.replaced(old, level);
        if (level > opened_) to.at<inner>(inner_[level - 1])->child[digit(level - 1)] = copy;
        inner_[level] = copy;
    }
}

inline ref trie_way::link(shadow& to, ref below) noexcept {
    if (depth_ == 0) return below;
    to.at<inner>(inner_[depth_ - 1])->child[digit(depth_ - 1)] = below;
    if (opened_ > 0 && opened_ < depth_)
        to.at<inner>(inner_[opened_ - 1])->child[digit(opened_ - 1)] = inner_[opened_];
    return inner_[0];
}

/// The trie for one pair of types: functions on words. Value 'nothing' makes it a set's.
template <element Key, class Value, class Hash, class Equal> class trie {
public:
    static constexpr bool is_set = std::is_same_v<Value, nothing>;
    static constexpr bool values_in_keys = byte_string<Key> && byte_string<Value>;
    using key_slot = slot<Key>;
    using value_slot = slot<Value>;
    using key_view = typename key_slot::view;
    using value_view = typename value_slot::view;
    using key_type = Key;
    using mapped_type = Value;
    using value_type = std::conditional_t<is_set, Key, std::pair<Key, Value>>;
    using reference = std::conditional_t<is_set, key_view, entry<Key, Value>>;
    static_assert(std::is_invocable_v<Hash, key_view>, "for strings: of a std::string_view");
    static_assert(std::is_invocable_v<Equal, key_view, key_view>);

    static constexpr leaf_layout layout = {key_slot::form, values_in_keys ? slot_form{0, 1, false}
                                                                          : value_slot::form};
    static constexpr unsigned capacity = layout.capacity();
    static constexpr bool entries_have_bytes = layout.key.bytes + layout.value.bytes > 0;
    static constexpr unsigned merged_max = std::max(1U, (capacity + 1) / 2); // (4)

    static constexpr std::uint64_t shape() noexcept {
        std::uint16_t identity = 0xffff;
        if constexpr (requires { Hash::identity; }) identity = Hash::identity;
        return trie_shape{layout, is_set, values_in_keys, identity}.bits();
    }
    /// Whether 'Other' may be looked up beside keys.
    template <class Other>
    static constexpr bool looks_up =
        transparent<Hash> && transparent<Equal> && !std::is_convertible_v<const Other&, key_view> &&
        std::is_invocable_v<Hash, const Other&> &&
        std::is_invocable_v<Equal, key_view, const Other&>;

    template <class Query> static std::uint64_t hash_of(const Query& key) noexcept {
        const auto bits = static_cast<std::uint64_t>(Hash{}(key));
        if constexpr (requires { typename Hash::is_avalanching; }) return bits;
        return mixed(bits);
    }
    /// A leaf whose entries lie in the pool. In the place of one that says what cannot be, one that
    /// has no entries.
    static const std::byte* leaf_at(const std::byte* base, ref leaf) noexcept {
        // Wherever the largest leaf would have room, the count alone tells.
        const std::byte* at = bounded_node<std::byte>(base, leaf & ref_max);
        if (std::uint64_t{leaf & ref_max} * granule_bytes + layout.bytes(capacity) <=
                reach_of(base) &&
            (leaf_head::of(at).bits & 0xff) <= capacity) [[likely]]
            return at;
        return looked_at_leaf(base, leaf);
    }
    /// The same for any leaf: wide ones, and those at the pool's end.
    [[gnu::noinline]] static const std::byte* looked_at_leaf(const std::byte* base,
                                                             ref leaf) noexcept {
        const std::byte* at = node_at<std::byte>(base, leaf);
        const auto head = leaf_head::of(at);
        const std::uint64_t count = head.count();
        const bool sound = head.is_wide() ? count > capacity : count <= capacity;
        if (!sound || !within(base, at, layout.bytes(count) + (entries_have_bytes ? 0 : count)))
            [[unlikely]]
            return nowhere;
        return at;
    }
    static key_view key(const std::byte* base, const std::byte* leaf, std::size_t index) noexcept {
        return key_slot::read(base, key_place(leaf, index));
    }
    static value_view value(const std::byte* base, const std::byte* leaf, std::size_t count,
                            std::size_t index) noexcept {
        if constexpr (values_in_keys)
            return blob_value(base, key_slot::blob_of(key_place(leaf, index)));
        else return value_slot::read(base, value_place(leaf, count, index));
    }

    static reference entry_at(const std::byte* base, const std::byte* leaf, std::size_t count,
                              std::size_t index) noexcept {
        if constexpr (is_set) return key(base, leaf, index);
        else return {key(base, leaf, index), value(base, leaf, count, index)};
    }

    /// The entry of this key in a leaf; its count when there is none.
    template <class Query>
    static std::uint32_t search(const std::byte* base, const std::byte* leaf, std::uint64_t hash,
                                const Query& wanted) noexcept {
        const auto head = leaf_head::of(leaf);
        if (head.is_wide()) [[unlikely]]
            return search_wide(base, leaf, wanted);
        for (std::uint64_t found = head.candidates(tag_of(hash)); found != 0; found &= found - 1) {
            const auto index = static_cast<std::uint32_t>(std::countr_zero(found)) / 8 - 1;
            if (Equal{}(key(base, leaf, index), wanted)) return index;
        }
        return head.count();
    }

    struct place {
        const std::byte* leaf = nullptr; // none: not found
        std::uint32_t index = 0;
        std::uint32_t count = 0;
    };
    template <class Query>
    static place find(const std::byte* base, std::uint64_t word, const Query& wanted) noexcept {
        const std::uint64_t hash = hash_of(wanted);
        ref at = top_of(word);
        if (at == 0) return {}; // perhaps of no pool
        unsigned left = trie_levels;
        const ref last = last_ref(base, sizeof(inner));
        for (std::uint64_t rest = hash; is_inner(at, last); rest >>= 4) {
            if (left-- == 0) [[unlikely]]
                return {};
            at = bounded_node<inner>(base, at)->child[rest & 15];
        }
        if ((at & leaf_bit) == 0) return {};
        const std::byte* leaf = leaf_at(base, at);
        const std::uint32_t count = leaf_head::of(leaf).count();
        const std::uint32_t index = search(base, leaf, hash, wanted);
        return index == count ? place{} : place{leaf, index, count};
    }

    enum class when_there : std::uint8_t { keep, assign };
    /// Whether the key is new. 'word' becomes the new version's; it stays when nothing changes or
    /// the shadow fails.
    static bool insert(shadow& to, std::uint64_t& word, key_view key, value_view value,
                       when_there what);
    /// Whether the key was there.
    template <class Query> static bool erase(shadow& to, std::uint64_t& word, const Query& wanted);
    static void clear(shadow& to, std::uint64_t& word) {
        const ref top = top_of(word);
        if (top != 0) to.released(top & ref_max, (top & leaf_bit) != 0 ? leaf_context : 0);
        word = 0;
    }

private:
    /// An entry on its way to a new leaf: slots, and the hash of the key.
    struct item {
        const std::byte* key;
        const std::byte* value;
        std::uint64_t hash;
    };
    /// The slots of an entry to come.
    struct draft {
        alignas(granule_bytes) std::byte key[std::max<std::size_t>(layout.key.bytes, 1)];
        alignas(granule_bytes) std::byte value[std::max<std::size_t>(layout.value.bytes, 1)];
        draft(shadow& to, key_view k, value_view v) { write(to, key, value, k, v); }
    };
    struct merger;

    template <class Byte> static Byte* key_place(Byte* leaf, std::size_t index) noexcept {
        return leaf + layout.keys() + index * layout.key.bytes;
    }
    template <class Byte>
    static Byte* value_place(Byte* leaf, std::size_t count, std::size_t index) noexcept {
        return leaf + layout.values(count) + index * layout.value.bytes;
    }
    static void write(shadow& to, std::byte* key_at, std::byte* value_at, key_view key,
                      value_view value) {
        if constexpr (values_in_keys) {
            const ref blob = make_blob(to, key, value);
            std::memcpy(key_at, &blob, sizeof blob);
        } else if (key_slot::write(to, key_at, key)) {
            value_slot::write(to, value_at, value);
        }
    }
    static void copy_entry(std::byte* to, std::size_t to_count, std::size_t to_index,
                           const std::byte* key, const std::byte* value) noexcept {
        std::memcpy(key_place(to, to_index), key, layout.key.bytes);
        std::memcpy(value_place(to, to_count, to_index), value, layout.value.bytes);
    }
    static void copy_entries(std::byte* to, std::size_t to_count, const std::byte* from,
                             std::size_t from_count, std::size_t count) noexcept {
        // A damaged leaf may say that it reaches over the new one.
        std::memmove(key_place(to, 0), key_place(from, 0), count * layout.key.bytes);
        std::memmove(value_place(to, to_count, 0), value_place(from, from_count, 0),
                     count * layout.value.bytes);
    }
    /// 0 for a slot that holds no ref.
    static std::array<ref, 2> blobs_of(const std::byte* leaf, std::size_t count,
                                       std::size_t index) noexcept {
        std::array<ref, 2> blobs{};
        if constexpr (byte_string<Key>) blobs[0] = key_slot::blob_of(key_place(leaf, index));
        if constexpr (byte_string<Value> && !values_in_keys)
            blobs[1] = value_slot::blob_of(value_place(leaf, count, index));
        return blobs;
    }
    template <class Query>
    static std::uint32_t search_wide(const std::byte* base, const std::byte* leaf,
                                     const Query& wanted) noexcept {
        const std::uint32_t count = leaf_head::of(leaf).count();
        for (std::uint32_t i = 0; i < count; ++i)
            if (Equal{}(key(base, leaf, i), wanted)) return i;
        return count;
    }

    static ref make_leaf(shadow& to, leaf_head head) {
        const ref made = to.make(layout.bytes(head.count()));
        if (made == 0) return 0;
        head.put(to.at<std::byte>(made));
        return made | leaf_bit;
    }
    static leaf_head head_for(std::uint32_t count, std::uint64_t hash) noexcept {
        if (count > capacity) return leaf_head::wide(count);
        leaf_head head{0};
        while (head.count() < count) head = head.with(tag_of(hash));
        return head;
    }
    static ref leaf_of_one(shadow& to, std::uint64_t hash, key_view key, value_view value) {
        const ref made = make_leaf(to, head_for(1, hash));
        if (made == 0) return 0;
        auto* leaf = to.at<std::byte>(made);
        write(to, key_place(leaf, 0), value_place(leaf, 1, 0), key, value);
        return made;
    }
    static ref leaf_with(shadow& to, const std::byte* old, std::uint64_t hash, key_view key,
                         value_view value);
    static ref leaf_without(shadow& to, const std::byte* old, std::uint64_t hash,
                            std::uint32_t index);
    static ref leaf_of(shadow& to, const item* items, std::uint32_t count);
    static ref build(shadow& to, unsigned level, const item* items, std::uint32_t count);
    static ref split(shadow& to, unsigned level, const std::byte* old, std::uint64_t hash,
                     key_view key, value_view value);
    static void assign(shadow& to, std::uint64_t& word, trie_way& way, std::uint32_t index,
                       value_view value);
    static void rewrite(shadow& to, std::byte* leaf, std::uint32_t count, std::uint32_t index,
                        value_view value);
};

template <element Key, class Value, class Hash, class Equal>
bool trie<Key, Value, Hash, Equal>::insert(shadow& to, std::uint64_t& word, key_view key,
                                           value_view value, when_there what) {
    const std::uint64_t hash = hash_of(key);
    trie_way way(to.base(), top_of(word), hash);
    const std::byte* old = way.leaf() == 0 ? nullptr : leaf_at(to.base(), way.leaf());
    const std::uint32_t count = old == nullptr ? 0 : leaf_head::of(old).count();
    if (way.damaged() || (old != nullptr && count == 0)) {
        to.fail_damaged();
        return false;
    }
    if (old != nullptr) {
        const std::uint32_t index = search(to.base(), old, hash, key);
        if (index != count) {
            if (what == when_there::assign) assign(to, word, way, index, value);
            return false;
        }
    }
    if (count_of(word) == 0xffff'ffff) to.fail();
    way.open(to);
    if (to.failed()) return false;
    const ref made = old == nullptr ? leaf_of_one(to, hash, key, value)
                     : count < capacity || way.depth() == trie_levels
                         ? leaf_with(to, old, hash, key, value)
                         : split(to, way.depth(), old, hash, key, value);
    if (to.failed()) return false; // (5)
    if (old != nullptr) to.replaced(way.leaf() & ref_max, leaf_context | way.depth());
    word = word_of(way.link(to, made), count_of(word) + 1);
    return true;
}

template <element Key, class Value, class Hash, class Equal>
ref trie<Key, Value, Hash, Equal>::leaf_with(shadow& to, const std::byte* old, std::uint64_t hash,
                                             key_view key, value_view value) {
    const auto head = leaf_head::of(old);
    const std::uint32_t count = head.count();
    const bool widens = count >= capacity; // (3)
    const ref made = make_leaf(to, widens ? leaf_head::wide(count + 1) : head.with(tag_of(hash)));
    if (made == 0) return 0;
    auto* leaf = to.at<std::byte>(made);
    copy_entries(leaf, count + 1, old, count, count);
    write(to, key_place(leaf, count), value_place(leaf, count + 1, count), key, value);
    return made;
}

/// The last entry comes in the place of the one left out. Requires: there are two.
template <element Key, class Value, class Hash, class Equal>
ref trie<Key, Value, Hash, Equal>::leaf_without(shadow& to, const std::byte* old,
                                                std::uint64_t hash, std::uint32_t index) {
    const auto head = leaf_head::of(old);
    const std::uint32_t rest = head.count() - 1;
    const ref made = make_leaf(to, head.is_wide() ? head_for(rest, hash) : head.without(index));
    if (made == 0) return 0;
    auto* leaf = to.at<std::byte>(made);
    copy_entries(leaf, rest, old, rest + 1, rest);
    if (index != rest)
        copy_entry(leaf, rest, index, key_place(old, rest), value_place(old, rest + 1, rest));
    return made;
}

template <element Key, class Value, class Hash, class Equal>
ref trie<Key, Value, Hash, Equal>::leaf_of(shadow& to, const item* items, std::uint32_t count) {
    leaf_head head = leaf_head::wide(count);
    if (count <= capacity) {
        head = {0};
        for (std::uint32_t i = 0; i < count; ++i) head = head.with(tag_of(items[i].hash));
    }
    const ref made = make_leaf(to, head);
    if (made == 0) return 0;
    auto* leaf = to.at<std::byte>(made);
    for (std::uint32_t i = 0; i < count; ++i)
        copy_entry(leaf, count, i, items[i].key, items[i].value);
    return made;
}

/// A subtree of at most one leaf's entries and one.
template <element Key, class Value, class Hash, class Equal>
ref trie<Key, Value, Hash, Equal>::build(shadow& to, unsigned level, const item* items,
                                         std::uint32_t count) {
    if (count <= capacity || level == trie_levels) return leaf_of(to, items, count);
    const ref made = to.make(sizeof(inner));
    if (made == 0) return 0;
    std::memset(to.at<inner>(made), 0, sizeof(inner));
    for (unsigned d = 0; d < 16; ++d) {
        std::array<item, capacity + 1> same;
        std::uint32_t sames = 0;
        for (std::uint32_t i = 0; i < count; ++i)
            if (digit_of(items[i].hash, level) == d) same[sames++] = items[i];
        if (sames == 0) continue;
        const ref below = build(to, level + 1, same.data(), sames);
        if (below == 0) return 0;
        to.at<inner>(made)->child[d] = below;
    }
    return made;
}

template <element Key, class Value, class Hash, class Equal>
ref trie<Key, Value, Hash, Equal>::split(shadow& to, unsigned level, const std::byte* old,
                                         std::uint64_t hash, key_view key, value_view value) {
    const draft added(to, key, value);
    if (to.failed()) return 0;
    std::array<item, capacity + 1> items;
    for (std::uint32_t i = 0; i < capacity; ++i)
        items[i] = {key_place(old, i), value_place(old, capacity, i),
                    hash_of(trie::key(to.base(), old, i))};
    items[capacity] = {added.key, added.value, hash};
    return build(to, level, items.data(), capacity + 1);
}

/// In a leaf that the shadow made. The old value's blob is given up.
template <element Key, class Value, class Hash, class Equal>
void trie<Key, Value, Hash, Equal>::rewrite(shadow& to, std::byte* leaf, std::uint32_t count,
                                            std::uint32_t index, value_view value) {
    std::byte* const at = values_in_keys ? key_place(leaf, index) : value_place(leaf, count, index);
    if constexpr (byte_string<Value>) {
        const ref old = value_slot::blob_of(at);
        std::string_view kept;
        if constexpr (values_in_keys) kept = blob_key(to.base(), old);
        const ref blob = values_in_keys ? make_blob(to, kept, value) : make_blob(to, value);
        if (blob == 0) return;
        std::memcpy(at, &blob, sizeof blob);
        to.replaced(old, blob_context);
    } else {
        value_slot::write(to, at, value);
    }
}

template <element Key, class Value, class Hash, class Equal>
void trie<Key, Value, Hash, Equal>::assign(shadow& to, std::uint64_t& word, trie_way& way,
                                           std::uint32_t index, value_view value) {
    const ref old = way.leaf() & ref_max;
    const std::uint32_t count = leaf_head::of(leaf_at(to.base(), old)).count();
    if (to.fresh(old)) return rewrite(to, to.at<std::byte>(old), count, index, value);
    way.open(to);
    if (to.failed()) return;
    const ref made = to.make(layout.bytes(count));
    if (made == 0) return;
    std::memcpy(to.at<std::byte>(made), leaf_at(to.base(), old), layout.bytes(count));
    to.replaced(old, leaf_context | way.depth());
    rewrite(to, to.at<std::byte>(made), count, index, value);
    if (to.failed()) return;
    word = word_of(way.link(to, made | leaf_bit), count_of(word));
}

/// (4): how far up an erasure reaches. Reads only, until the way is open.
template <element Key, class Value, class Hash, class Equal>
struct trie<Key, Value, Hash, Equal>::merger {
    const std::byte* base;
    std::uint32_t total; // entries that are left
    unsigned depth;      // where they go
    unsigned parts = 0;
    std::array<ref, leaf_entries_max> part{}; // other leaves that go with them
    std::array<unsigned, leaf_entries_max> level{};

    /// Takes in what hangs beside the way, level by level, as long as it all fits one leaf.
    void climb(const trie_way& way) noexcept {
        while (depth > 0 && takes(way)) --depth;
    }
    bool takes(const trie_way& way) noexcept {
        const auto* node = node_at<inner>(base, way.inner_at(depth - 1));
        unsigned more = parts;
        std::uint32_t sum = total;
        for (unsigned d = 0; d < 16; ++d) {
            const ref child = node->child[d];
            if (child == 0 || d == way.digit(depth - 1)) continue;
            if ((child & leaf_bit) == 0 || more == leaf_entries_max) return false;
            part[more] = child & ref_max;
            level[more++] = depth;
            sum += leaf_head::of(leaf_at(base, child)).count();
            const bool alone = total == 0 && more == 1 && sum <= capacity;
            if (sum > merged_max && !alone) return false;
        }
        if (sum > capacity) return false; // a wide leaf stays
        parts = more;
        total = sum;
        return true;
    }
    /// The leaf of all that is left. Requires: none of the leaves is wide.
    ref merged(shadow& to, const std::byte* old, std::uint32_t erased) const {
        std::array<item, leaf_entries_max> items;
        std::uint32_t gathered = 0;
        const auto gather = [&](const std::byte* leaf, std::uint32_t but) {
            const auto head = leaf_head::of(leaf);
            for (std::uint32_t i = 0; i < head.count(); ++i)
                if (i != but)
                    items[gathered++] = {key_place(leaf, i), value_place(leaf, head.count(), i),
                                         head.tag(i) << 56};
        };
        gather(old, erased);
        for (unsigned p = 0; p < parts; ++p) gather(leaf_at(base, part[p]), leaf_entries_max);
        return leaf_of(to, items.data(), gathered);
    }
};

template <element Key, class Value, class Hash, class Equal>
template <class Query>
bool trie<Key, Value, Hash, Equal>::erase(shadow& to, std::uint64_t& word, const Query& wanted) {
    const std::uint64_t hash = hash_of(wanted);
    trie_way way(to.base(), top_of(word), hash);
    if (way.damaged()) to.fail_damaged();
    if (way.leaf() == 0) return false;
    const std::byte* old = leaf_at(to.base(), way.leaf());
    const std::uint32_t count = leaf_head::of(old).count();
    const std::uint32_t index = search(to.base(), old, hash, wanted);
    if (count == 0 || (index != count && count_of(word) == 0)) to.fail_damaged();
    if (index == count || to.failed()) return false;

    merger rest{to.base(), count - 1, way.depth()};
    rest.climb(way);
    const unsigned depth = way.depth();
    way.cut(rest.depth);
    way.open(to);
    if (to.failed()) return false;
    ref made = 0;
    if (rest.parts == 1 && count == 1) made = rest.part[0] | leaf_bit; // as it is, higher up
    else if (rest.parts > 0) made = rest.merged(to, old, index);
    else if (count > 1) made = leaf_without(to, old, hash, index);
    if (to.failed()) return false;                  // (5)
    const auto blobs = blobs_of(old, count, index); // the leaf may be reused from here on
    for (unsigned level = rest.depth; level < depth; ++level)
        to.replaced(way.inner_at(level), level);
    to.replaced(way.leaf() & ref_max, leaf_context | depth);
    for (unsigned p = 0; p < rest.parts && made != (rest.part[p] | leaf_bit); ++p)
        to.replaced(rest.part[p], leaf_context | rest.level[p]);
    for (const ref blob : blobs)
        if (blob != 0) to.replaced(blob, blob_context);
    word = word_of(way.link(to, made), count_of(word) - 1);
    return true;
}

/// The leaves' order, which is that of hashes: forward only.
template <class Trie> class trie_iterator {
public:
    using iterator_concept = std::forward_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = typename Trie::value_type;
    using reference = typename Trie::reference;
    struct pointer {
        reference held;
        const std::remove_reference_t<reference>* operator->() const noexcept {
            return std::addressof(held);
        }
    };

    trie_iterator() noexcept = default;
    /// The first entry.
    trie_iterator(const std::byte* base, std::uint64_t word) noexcept
        : base_(base), left_(count_of(word)) {
        way_.first(base, top_of(word));
        enter();
    }
    /// The entry of a key, or the end.
    template <class Query>
    trie_iterator(const std::byte* base, std::uint64_t word, const Query& wanted) noexcept
        : trie_iterator(base, word, wanted, Trie::hash_of(wanted)) {}

    reference operator*() const noexcept { return Trie::entry_at(base_, leaf_, count_, index_); }
    pointer operator->() const noexcept { return {**this}; }
    trie_iterator& operator++() noexcept {
        if (++index_ == count_) {
            way_.next(base_);
            enter();
        }
        return *this;
    }
    trie_iterator operator++(int) noexcept {
        auto before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const trie_iterator& a, const trie_iterator& b) noexcept {
        return a.leaf_ == b.leaf_ && a.index_ == b.index_;
    }

private:
    template <class Query>
    trie_iterator(const std::byte* base, std::uint64_t word, const Query& wanted,
                  std::uint64_t hash) noexcept
        : base_(base), left_(count_of(word)), way_(base, top_of(word), hash) {
        enter();
        if (leaf_ == nullptr) return;
        index_ = Trie::search(base, leaf_, hash, wanted);
        if (index_ == count_) {
            leaf_ = nullptr;
            index_ = 0;
        }
    }
    /// A damaged trie ends when it has given as many entries as it is said to have, or where a leaf
    /// has none.
    void enter() noexcept {
        leaf_ = way_.leaf() == 0 ? nullptr : Trie::leaf_at(base_, way_.leaf());
        count_ = leaf_ == nullptr ? 0 : leaf_head::of(leaf_).count();
        index_ = 0;
        if (count_ == 0 || count_ > left_) {
            leaf_ = nullptr;
            count_ = 0;
        }
        left_ -= count_;
    }

    const std::byte* base_ = nullptr;
    const std::byte* leaf_ = nullptr;
    std::uint32_t index_ = 0;
    std::uint32_t count_ = 0;
    std::size_t left_ = 0; // entries behind this leaf, at most
    trie_way way_;
};

/// What maps, sets, their versions and batches let read. 'Self' has base() and word().
///
/// Cost:     find, contains, count, get: O(log16 n) lines; size: 1.
/// Ordering: 0.
/// Threads:  of a version: any. Of a handle or a batch: not beside a writer, and what was read is
///           valid until the next update; versions keep it.
template <class Self, class Trie> class trie_reading {
public:
    using key_type = typename Trie::key_type;
    using value_type = typename Trie::value_type;
    using reference = typename Trie::reference;
    using const_reference = reference;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using iterator = trie_iterator<Trie>;
    using const_iterator = iterator;
    /// How keys are given and read: a const reference, or a std::string_view.
    using key_view = typename Trie::key_view;

    size_type size() const noexcept { return count_of(self().word()); }
    bool empty() const noexcept { return size() == 0; }
    iterator begin() const noexcept { return iterator(self().base(), self().word()); }
    iterator end() const noexcept { return {}; }
    const_iterator cbegin() const noexcept { return begin(); }
    const_iterator cend() const noexcept { return {}; }

    /// The key's entry, or end().
    iterator find(key_view key) const noexcept {
        return iterator(self().base(), self().word(), key);
    }
    bool contains(key_view key) const noexcept { return at(key).leaf != nullptr; }
    size_type count(key_view key) const noexcept { return contains(key); }

    /// The same with what the hash and the comparison take beside keys (is_transparent in both).
    template <class Query>
        requires Trie::template
    looks_up<Query> iterator find(const Query& key) const noexcept {
        return iterator(self().base(), self().word(), key);
    }
    template <class Query>
        requires Trie::template
    looks_up<Query> bool contains(const Query& key) const noexcept {
        return at(key).leaf != nullptr;
    }
    template <class Query>
        requires Trie::template
    looks_up<Query> size_type count(const Query& key) const noexcept {
        return contains(key);
    }

protected:
    template <class Query> typename Trie::place at(const Query& key) const noexcept {
        return Trie::find(self().base(), self().word(), key);
    }
    const Self& self() const noexcept { return static_cast<const Self&>(*this); }
};

/// The same for maps.
template <class Self, class Trie> class map_reading : public trie_reading<Self, Trie> {
public:
    using mapped_type = typename Trie::mapped_type;
    /// How values are given and read: a const reference, or a std::string_view.
    using value_view = typename Trie::value_view;
    /// What get() gives; false when there is no such key: a pointer into the pool, or an optional
    /// std::string_view.
    using found_value = std::conditional_t<byte_string<mapped_type>,
                                           std::optional<std::string_view>, const mapped_type*>;

    found_value get(typename Trie::key_view key) const noexcept { return value_at(this->at(key)); }
    template <class Query>
        requires Trie::template
    looks_up<Query> found_value get(const Query& key) const noexcept {
        return value_at(this->at(key));
    }

protected:
    found_value value_at(typename Trie::place found) const noexcept {
        if (found.leaf == nullptr) return {};
        if constexpr (byte_string<mapped_type>)
            return Trie::value(this->self().base(), found.leaf, found.count, found.index);
        else return &Trie::value(this->self().base(), found.leaf, found.count, found.index);
    }
};

} // namespace detail
} // namespace hf::mod
