// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The B+tree under mod::ordered_map; its updates copy the way from the top to a leaf. Also the
// worked example of docs/guide/mod-recipe.md.          Source: MOD §4.1-4.2.
//
// A root's word is {ref of the top node (low 32 bits), elements (high 32)}; ref 0: empty.
//
// (1) Leaves hold keys and values, inner nodes keys and refs of children; bit 31 of a ref marks a
//     leaf. Both are {count, keys, seconds}, so one draft writes both. Every node has an entry.
// (2) Key i of an inner node is at most any key below child i, and greater than any below child i -
//     1. Key 0 is not read: its room is used when the node is merged.
// (3) A node is full at a few lines, because every copied line is flushed. If an erasure leaves a
//     child a quarter full or less, the child is merged with a neighbour, provided that both fill
//     three quarters at most. So the next insertion does not split again what the last erasure
//     merged.
// (4) Leaves have no links to each other: a leaf with a link would have to be copied with its
//     neighbour, and that one with its own neighbour … Iterators keep the way instead.
// (5) Updates are functions from a word to a word. They build from the leaf up. When all is built,
//     they give up what they replaced, from the top down. A failed update has changed nothing.
//
// Why not a binary tree, which would be shorter: at 1 M entries each update would copy about 20
// nodes of a line, and each search would miss the cache as often. Here an inner node of two lines
// has ten children and more.
#pragma once

#include <holdfast/author/mod/key.hpp>
#include <holdfast/mod/detail/bplus_node.hpp>
#include <holdfast/mod/detail/bplus_reading.hpp>
#include <holdfast/mod/detail/element.hpp>
#include <holdfast/mod/detail/entry.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace hf::mod::detail {

/// The tree for a pair of types: functions on words.
template <element Key, element Value, class Compare>
class bplus_tree : public entry_types<Key, Value> {
    using form = ordered::form;

public:
    using way = ordered::way;
    using key_slot = slot<Key>;
    using value_slot = slot<Value>;
    using typename entry_types<Key, Value>::key_view;
    using typename entry_types<Key, Value>::value_view;
    using value_type = std::pair<Key, Value>;
    using reference = entry<Key, Value>;
    template <class Self> using reading = tree_reading<Self, bplus_tree>;
    static_assert(
        std::is_invocable_r_v<bool, Compare, key_view, key_view>,
        "Compare takes two keys, for std::string two std::string_views, and returns a bool");

    static constexpr const kind& its_kind = bplus_tree_kind;
    static constexpr form leaf = ordered::leaf_form(key_slot::form, value_slot::form);
    static constexpr form inner = ordered::inner_form(key_slot::form);
    static constexpr ordered::forms forms = {leaf, inner};

    static constexpr std::uint64_t shape() noexcept {
        std::uint16_t identity = 0xffff;
        if constexpr (requires { Compare::identity; }) identity = Compare::identity;
        return ordered::shape_of(key_slot::form, value_slot::form, identity);
    }
    /// Whether 'Other' may be looked up like a key.
    template <class Other>
    static constexpr bool looks_up =
        transparent<Compare> && !std::is_convertible_v<const Other&, key_view> &&
        std::is_invocable_r_v<bool, Compare, key_view, const Other&> &&
        std::is_invocable_r_v<bool, Compare, const Other&, key_view>;

    // Reading.

    enum class bound : std::uint8_t { lower, upper };
    /// The way to the first entry that is not before the key (lower) or is behind it (upper).
    template <bound Which, class Query>
    static way find_bound(const std::byte* base, ref top, const Query& wanted) noexcept {
        way to = descend<Which>(base, top, wanted);
        if (to.leaf != 0 && to.entry == ordered::count_of(at<leaf>(base, to.leaf))) next(base, to);
        return to;
    }
    /// The way to the entry of the key; behind the last entry if the key is missing.
    template <class Query>
    static way find(const std::byte* base, ref top, const Query& wanted) noexcept {
        way to = descend<bound::lower>(base, top, wanted);
        return is(base, to, wanted) ? to : way{};
    }
    static reference entry_at(const std::byte* base, const way& of) noexcept {
        const std::byte* node = at<leaf>(base, of.leaf);
        return {key_at<leaf>(base, node, of.entry),
                value_slot::read(base, ordered::value_place(leaf, node, of.entry))};
    }
    static way first(const std::byte* base, ref top) noexcept {
        way to;
        follow(base, to, top, false);
        return to;
    }
    static way last(const std::byte* base, ref top) noexcept {
        way to;
        follow(base, to, top, true);
        return to;
    }
    /// Requires: the way leads to an entry.
    static void next(const std::byte* base, way& on) noexcept {
        if (++on.entry < ordered::count_of(at<leaf>(base, on.leaf))) return;
        turn(base, on, 1);
    }
    /// Requires: the way leads to an entry, not the first.
    static void previous(const std::byte* base, way& on) noexcept {
        if (on.entry-- > 0) return;
        turn(base, on, -1);
    }

    // Updates: 'word' becomes the new version's; it stays if nothing changes or the shadow fails.

    enum class when_there : std::uint8_t { keep, assign };
    /// Returns whether the key is new.
    static bool insert(shadow& to, std::uint64_t& word, key_view key, value_view value,
                       when_there what);
    /// Returns whether the key was there.
    template <class Query> static bool erase(shadow& to, std::uint64_t& word, const Query& wanted);
    /// Erases the keys from 'from' to before 'upto'. Returns how many.
    static std::size_t erase(shadow& to, std::uint64_t& word, key_view from, key_view upto);
    // [clear]
    static void clear(shadow& to, std::uint64_t& word) {
        if (const ref top = ordered::top_of(word); top != 0)
            to.released(top, ordered::context_of(top, 0));
        word = 0;
    }
    // [/clear]

private:
    template <const form& Of> static const std::byte* at(const std::byte* base, ref node) noexcept {
        return ordered::node_of(Of, base, node);
    }
    template <const form& Of>
    static key_view key_at(const std::byte* base, const std::byte* node, std::size_t i) noexcept {
        return key_slot::read(base, ordered::key_place(Of, node, i));
    }

    /// The first entry from 'first' on for whose key 'before' does not hold.
    template <const form& Of, class Before>
    static unsigned search(const std::byte* base, const std::byte* node, unsigned first,
                           Before before) noexcept {
        unsigned end = ordered::count_of(node);
        while (first < end) {
            const unsigned middle = (first + end) / 2;
            if (before(key_at<Of>(base, node, middle))) first = middle + 1;
            else end = middle;
        }
        return first;
    }
    /// The way to the bound within the leaf of the key: perhaps behind its last entry.
    template <bound Which, class Query>
    static way descend(const std::byte* base, ref top, const Query& wanted) noexcept {
        const auto before = [&](key_view key) { return bool(Compare{}(key, wanted)); };
        const auto not_after = [&](key_view key) { return !Compare{}(wanted, key); };
        way to;
        ref node = top;
        for (; node != 0 && !ordered::is_leaf(node); ++to.depth) {
            const std::byte* bytes = at<inner>(base, node);
            if (to.depth == ordered::levels_max || bytes == nowhere) [[unlikely]] {
                to.break_off();
                return to;
            }
            const unsigned child = search<inner>(base, bytes, 1, not_after) - 1; // (2)
            to.node[to.depth] = node;
            to.child[to.depth] = static_cast<std::uint16_t>(child);
            node = ordered::child_at(inner, bytes, child);
        }
        if (top == 0) return to;
        const std::byte* bytes = node == 0 ? nowhere : at<leaf>(base, node);
        if (bytes == nowhere) [[unlikely]] {
            to.break_off();
            return to;
        }
        to.leaf = node;
        if constexpr (Which == bound::lower) to.entry = search<leaf>(base, bytes, 0, before);
        else to.entry = search<leaf>(base, bytes, 0, not_after);
        return to;
    }
    /// Whether a lower bound is the key's entry.
    template <class Query>
    static bool is(const std::byte* base, const way& found, const Query& wanted) noexcept {
        if (found.leaf == 0) return false;
        const std::byte* node = at<leaf>(base, found.leaf);
        return found.entry < ordered::count_of(node) &&
               !Compare{}(wanted, key_at<leaf>(base, node, found.entry));
    }
    /// Extends the way from its end to the first or the last entry below 'node'.
    static void follow(const std::byte* base, way& on, ref node, bool last) noexcept {
        for (; node != 0 && !ordered::is_leaf(node); ++on.depth) {
            const std::byte* bytes = at<inner>(base, node);
            if (on.depth == ordered::levels_max || bytes == nowhere) [[unlikely]]
                return on.break_off();
            const unsigned child = last ? ordered::count_of(bytes) - 1 : 0;
            on.node[on.depth] = node;
            on.child[on.depth] = static_cast<std::uint16_t>(child);
            node = ordered::child_at(inner, bytes, child);
        }
        if (node == 0) return on.break_off();
        const std::byte* bytes = at<leaf>(base, node);
        if (bytes == nowhere) [[unlikely]]
            return on.break_off();
        on.leaf = node;
        on.entry = last ? ordered::count_of(bytes) - 1 : 0;
    }
    /// Turns to the next leaf, or the one before: up to where there is a neighbour, and down.
    static void turn(const std::byte* base, way& on, int direction) noexcept {
        for (; on.depth > 0; --on.depth) {
            const std::byte* node = at<inner>(base, on.node[on.depth - 1]);
            const int child = on.child[on.depth - 1] + direction;
            if (child < 0 || child >= static_cast<int>(ordered::count_of(node))) continue;
            on.child[on.depth - 1] = static_cast<std::uint16_t>(child);
            follow(base, on, ordered::child_at(inner, node, static_cast<unsigned>(child)),
                   direction < 0);
            on.turns += direction;
            return;
        }
        on = {};
    }
};

// [insert]
template <element Key, element Value, class Compare>
bool bplus_tree<Key, Value, Compare>::insert(shadow& to, std::uint64_t& word, key_view key,
                                             value_view value, when_there what) {
    const way found = descend<bound::lower>(to.base(), ordered::top_of(word), key);
    if (found.damaged) {
        to.fail_damaged();
        return false;
    }
    const bool there = is(to.base(), found, key);
    if (there && what == when_there::keep) return false;

    alignas(Key) std::byte new_key[std::max<std::size_t>(leaf.key.bytes, 1)];
    alignas(Value) std::byte new_value[std::max<std::size_t>(leaf.value.bytes, 1)];
    if (!there) key_slot::write(to, new_key, key);
    value_slot::write(to, new_value, value);
    const ordered::item added = {
        there ? ordered::key_place(leaf, at<leaf>(to.base(), found.leaf), found.entry) : new_key,
        new_value};
    return ordered::change(to, word, forms, found, there, &added) && !there;
}
// [/insert]

template <element Key, element Value, class Compare>
template <class Query>
bool bplus_tree<Key, Value, Compare>::erase(shadow& to, std::uint64_t& word, const Query& wanted) {
    const way found = descend<bound::lower>(to.base(), ordered::top_of(word), wanted);
    if (found.damaged) to.fail_damaged();
    if (!is(to.base(), found, wanted)) return false;
    return ordered::change(to, word, forms, found, 1, nullptr);
}

template <element Key, element Value, class Compare>
std::size_t bplus_tree<Key, Value, Compare>::erase(shadow& to, std::uint64_t& word, key_view from,
                                                   key_view upto) {
    const Key low(from), high(upto); // they may be keys of nodes that this update gives up
    const auto before = [&](key_view key) { return bool(Compare{}(key, high)); };
    std::size_t erased = 0;
    while (!to.failed()) { // leaf by leaf: the next step changes nodes that this one makes
        const way first = find_bound<bound::lower>(to.base(), ordered::top_of(word), low);
        if (first.leaf == 0) break;
        const unsigned end =
            search<leaf>(to.base(), at<leaf>(to.base(), first.leaf), first.entry, before);
        if (end == first.entry) break;
        ordered::change(to, word, forms, first, end - first.entry, nullptr);
        erased += end - first.entry;
    }
    return erased;
}

} // namespace hf::mod::detail
