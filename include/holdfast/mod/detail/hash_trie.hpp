// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hash trie for a pair of types: reading and updating. Its nodes: trie_node.hpp.
#pragma once

#include <holdfast/author/mod/key.hpp>
#include <holdfast/mod/detail/element.hpp>
#include <holdfast/mod/detail/entry.hpp>
#include <holdfast/mod/detail/keyed.hpp>
#include <holdfast/mod/detail/trie_node.hpp>
#include <holdfast/mod/detail/trie_reading.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace hf::mod::detail {

/// The trie for one pair of types: functions on words. Value 'nothing' makes it a set's.
template <element Key, class Value, class Hash, class Equal>
class trie : public entry_types<Key, Value> {
public:
    static constexpr bool is_set = std::is_same_v<Value, nothing>;
    static constexpr bool values_in_keys = byte_string<Key> && byte_string<Value>;
    using key_slot = slot<Key>;
    using value_slot = slot<Value>;
    using typename entry_types<Key, Value>::key_view;
    using typename entry_types<Key, Value>::value_view;
    using value_type = std::conditional_t<is_set, Key, std::pair<Key, Value>>;
    using reference = std::conditional_t<is_set, key_view, entry<Key, Value>>;
    template <class Self>
    using reading = std::conditional_t<is_set, trie_reading<Self, trie>, map_reading<Self, trie>>;
    static_assert(std::is_invocable_v<Hash, key_view>,
                  "Hash takes a key, for std::string a std::string_view");
    static_assert(std::is_invocable_v<Equal, key_view, key_view>,
                  "Equal takes two keys, for std::string two std::string_views");

    static constexpr leaf_layout layout = {
        {key_slot::form, values_in_keys ? slot_form{0, 1, false} : value_slot::form}};
    static constexpr const kind& its_kind = hash_trie_kind;
    static constexpr unsigned capacity = layout.capacity();
    static constexpr bool entries_have_bytes = layout.key.bytes + layout.value.bytes > 0;
    static constexpr unsigned merged_max = std::max(1U, (capacity + 1) / 2); // (4)

    static constexpr std::uint64_t shape() noexcept {
        std::uint16_t identity = 0xffff;
        if constexpr (requires { Hash::identity; }) identity = Hash::identity;
        return trie_shape{layout, is_set, values_in_keys, identity}.bits();
    }
    /// Whether 'Other' may be looked up like a key.
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
    /// A leaf whose entries lie in the pool. A damaged leaf is replaced by one without entries.
    static const std::byte* leaf_at(const std::byte* base, ref leaf) noexcept {
        // Where the largest leaf would have room, the count alone decides.
        const std::byte* at = bounded_node<std::byte>(base, leaf & ref_max);
        if (std::uint64_t{leaf & ref_max} * granule_bytes + layout.bytes(capacity) <=
                reach_of(base) &&
            (leaf_head::of(at).bits & 0xff) <= capacity) [[likely]]
            return at;
        return looked_at_leaf(base, leaf);
    }
    /// Prefetches the lines of a leaf's entries together with its head's.
    static void fetch_leaf(const std::byte* base, ref leaf) noexcept {
        constexpr std::size_t lines = std::min<std::size_t>(layout.bytes(capacity) / 64, 2);
        for (std::size_t line = 1; line <= lines; ++line) fetch(base, leaf, line);
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

    /// The entry of this key in a leaf; the leaf's count if the key is missing.
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
        fetch_leaf(base, at);
        const std::byte* leaf = leaf_at(base, at);
        const std::uint32_t count = leaf_head::of(leaf).count();
        const std::uint32_t index = search(base, leaf, hash, wanted);
        return index == count ? place{} : place{leaf, index, count};
    }

    enum class when_there : std::uint8_t { keep, assign };
    /// Returns whether the key is new. 'word' becomes the new version's; it stays if nothing
    /// changes or the shadow fails.
    static bool insert(shadow& to, std::uint64_t& word, key_view key, value_view value,
                       when_there what);
    /// Returns whether the key was there.
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
    /// The slots of a future entry.
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
        // A damaged leaf may claim to reach over the new one.
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
    fetch_leaf(to.base(), way.leaf());
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

/// Replaces the entry left out by the last one. Requires: at least two entries.
template <element Key, class Value, class Hash, class Equal>
ref trie<Key, Value, Hash, Equal>::leaf_without(shadow& to, const std::byte* old,
                                                std::uint64_t hash, std::uint32_t index) {
    const auto head = leaf_head::of(old);
    assert(head.count() >= 2 && index < head.count());
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

/// A subtree of at most one leaf's entries and one more.
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

/// Changes a leaf that the shadow made. Gives up the old value's blob.
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
    // A damaged leaf may reach into its copy.
    std::memmove(to.at<std::byte>(made), leaf_at(to.base(), old), layout.bytes(count));
    to.replaced(old, leaf_context | way.depth());
    rewrite(to, to.at<std::byte>(made), count, index, value);
    if (to.failed()) return;
    word = word_of(way.link(to, made | leaf_bit), count_of(word));
}

/// Applies (4): how far up an erasure reaches. Only reads, until the way is open.
template <element Key, class Value, class Hash, class Equal>
struct trie<Key, Value, Hash, Equal>::merger {
    const std::byte* base;
    std::uint32_t total; // entries that are left
    unsigned depth;      // where they go
    unsigned parts = 0;
    std::array<ref, leaf_entries_max> part{}; // other leaves that go with them
    std::array<unsigned, leaf_entries_max> level{};

    /// Takes in what hangs beside the way, level by level, as long as everything fits one leaf.
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
    /// The leaf of all remaining entries. Requires: none of the leaves is wide.
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

} // namespace hf::mod::detail
