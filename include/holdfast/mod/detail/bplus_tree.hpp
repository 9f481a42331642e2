// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The B+tree under mod::ordered_map, whose updates copy the way from the top to a leaf. It is also
// the worked example of docs/guide/mod-recipe.md.          Source: MOD §4.1-4.2.
//
// A root's word is {ref of the top node (low 32 bits), elements (high 32)}; ref 0: empty.
//
// (1) Leaves hold keys and values, inner nodes keys and refs of children; bit 31 of a ref marks a
//     leaf. Both are {count, keys, seconds}, so one draft writes both. No node has none.
// (2) Key i of an inner node is at most any key below child i, and greater than any below child
//     i - 1. Key 0 is not read: room that a node keeps for the day when it is merged.
// (3) A node is full at a few lines: what is copied is what is flushed. A child that an erasure
//     leaves a quarter full or less goes into one node with a neighbour if they fill three quarters
//     at most. So the next insertion does not split again what the last erasure merged.
// (4) No links between leaves: a leaf with a link would have to be copied when its neighbour is,
//     and that one's neighbour … Iterators keep the way instead.
// (5) Updates are functions from a word to a word. They build from the leaf up, and give up what
//     they replaced when all is built, from the top down. One that failed has changed nothing.
//
// Why not a binary tree, which would be shorter: each update would copy about 20 nodes of a line
// at 1 M entries, and each search would miss the cache as often. Here an inner node of two lines
// has ten children and more.
#pragma once

#include <holdfast/mod/detail/bplus_node.hpp>
#include <holdfast/mod/detail/bplus_reading.hpp>
#include <holdfast/mod/detail/element.hpp>
#include <holdfast/mod/detail/entry.hpp>
#include <holdfast/mod/key.hpp>

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
    static_assert(std::is_invocable_r_v<bool, Compare, key_view, key_view>,
                  "for strings: of std::string_views");

    static constexpr const kind& its_kind = bplus_tree_kind;
    static constexpr form leaf = ordered::leaf_form(key_slot::form, value_slot::form);
    static constexpr form inner = ordered::inner_form(key_slot::form);

    static constexpr std::uint64_t shape() noexcept {
        std::uint16_t identity = 0xffff;
        if constexpr (requires { Compare::identity; }) identity = Compare::identity;
        return ordered::shape_of(key_slot::form, value_slot::form, identity);
    }
    /// Whether 'Other' may be looked up beside keys.
    template <class Other>
    static constexpr bool looks_up =
        transparent<Compare> && !std::is_convertible_v<const Other&, key_view> &&
        std::is_invocable_r_v<bool, Compare, key_view, const Other&> &&
        std::is_invocable_r_v<bool, Compare, const Other&, key_view>;

    // Reading.

    enum class bound : std::uint8_t { lower, upper };
    /// To the first entry that is not before the key (lower) or is behind it (upper).
    template <bound Which, class Query>
    static way find_bound(const std::byte* base, ref top, const Query& wanted) noexcept {
        way to = descend<Which>(base, top, wanted);
        if (to.leaf != 0 && to.entry == ordered::count_of(at<leaf>(base, to.leaf))) next(base, to);
        return to;
    }
    /// To the entry of the key; behind the last one when there is none.
    template <class Query>
    static way find(const std::byte* base, ref top, const Query& wanted) noexcept {
        way to = descend<bound::lower>(base, top, wanted);
        return is(base, to, wanted) ? to : way{};
    }
    static reference entry_at(const std::byte* base, const way& of) noexcept {
        const std::byte* node = at<leaf>(base, of.leaf);
        return {key_at<leaf>(base, node, of.entry),
                value_slot::read(base, second_place<leaf>(node, of.entry))};
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
    /// Requires: an entry.
    static void next(const std::byte* base, way& on) noexcept {
        if (++on.entry < ordered::count_of(at<leaf>(base, on.leaf))) return;
        turn(base, on, 1);
    }
    /// Requires: an entry that is not the first.
    static void previous(const std::byte* base, way& on) noexcept {
        if (on.entry-- > 0) return;
        turn(base, on, -1);
    }

    // Updates: 'word' becomes the new version's; it stays when nothing changes or the shadow fails.

    enum class when_there : std::uint8_t { keep, assign };
    /// Whether the key is new.
    static bool insert(shadow& to, std::uint64_t& word, key_view key, value_view value,
                       when_there what);
    /// Whether the key was there.
    template <class Query> static bool erase(shadow& to, std::uint64_t& word, const Query& wanted);
    /// Erases from a key on, up to another; how many.
    static std::size_t erase(shadow& to, std::uint64_t& word, key_view from, key_view upto);
    // [clear]
    static void clear(shadow& to, std::uint64_t& word) {
        if (const ref top = ordered::top_of(word); top != 0) to.released(top, context_of(top, 0));
        word = 0;
    }
    // [/clear]

private:
    struct item;
    template <form Form> struct draft;
    struct parts;
    class given_up;

    /// A node whose entries lie in the pool, with one at least. In the place of one that says what
    /// cannot be, one that has no entries, and zeros behind that.
    template <form Form> static const std::byte* at(const std::byte* base, ref node) noexcept {
        const std::byte* bytes = node_at<std::byte>(base, node);
        const std::uint32_t count = ordered::count_of(bytes);
        if (count - 1U >= Form.capacity() || !within(base, bytes, Form.bytes(count))) [[unlikely]]
            return nowhere;
        return bytes;
    }
    static bool is_leaf(ref node) noexcept { return (node & ordered::leaf_bit) != 0; }
    static std::uint32_t context_of(ref node, unsigned level) noexcept {
        return is_leaf(node) ? ordered::leaf_context : level;
    }
    template <form Form, class Byte> static Byte* key_place(Byte* node, std::size_t i) noexcept {
        return node + Form.keys() + i * Form.key.bytes;
    }
    template <form Form>
    static const std::byte* second_place(const std::byte* node, std::size_t i) noexcept {
        return node + Form.seconds(ordered::count_of(node)) + i * Form.second.bytes;
    }
    template <form Form>
    static key_view key_at(const std::byte* base, const std::byte* node, std::size_t i) noexcept {
        return key_slot::read(base, key_place<Form>(node, i));
    }
    static ref child_at(const std::byte* node, std::size_t i) noexcept {
        ref child;
        std::memcpy(&child, second_place<inner>(node, i), sizeof child);
        return child;
    }

    /// The first entry from 'first' on whose key is not 'before'.
    template <form Form, class Before>
    static unsigned search(const std::byte* base, const std::byte* node, unsigned first,
                           Before before) noexcept {
        unsigned end = ordered::count_of(node);
        while (first < end) {
            const unsigned middle = (first + end) / 2;
            if (before(key_at<Form>(base, node, middle))) first = middle + 1;
            else end = middle;
        }
        return first;
    }
    /// To the bound within the leaf where the key is or would be: perhaps behind its last entry.
    template <bound Which, class Query>
    static way descend(const std::byte* base, ref top, const Query& wanted) noexcept {
        const auto before = [&](key_view key) { return bool(Compare{}(key, wanted)); };
        const auto not_after = [&](key_view key) { return !Compare{}(wanted, key); };
        way to;
        ref node = top;
        for (; node != 0 && !is_leaf(node); ++to.depth) {
            const std::byte* bytes = at<inner>(base, node);
            if (to.depth == ordered::levels_max || bytes == nowhere) [[unlikely]] {
                to.break_off();
                return to;
            }
            const unsigned child = search<inner>(base, bytes, 1, not_after) - 1; // (2)
            to.node[to.depth] = node;
            to.child[to.depth] = static_cast<std::uint16_t>(child);
            node = child_at(bytes, child);
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
    /// On from the way's end to the first or the last entry below 'node'.
    static void follow(const std::byte* base, way& on, ref node, bool last) noexcept {
        for (; node != 0 && !is_leaf(node); ++on.depth) {
            const std::byte* bytes = at<inner>(base, node);
            if (on.depth == ordered::levels_max || bytes == nowhere) [[unlikely]]
                return on.break_off();
            const unsigned child = last ? ordered::count_of(bytes) - 1 : 0;
            on.node[on.depth] = node;
            on.child[on.depth] = static_cast<std::uint16_t>(child);
            node = child_at(bytes, child);
        }
        if (node == 0) return on.break_off();
        const std::byte* bytes = at<leaf>(base, node);
        if (bytes == nowhere) [[unlikely]]
            return on.break_off();
        on.leaf = node;
        on.entry = last ? ordered::count_of(bytes) - 1 : 0;
    }
    /// To the next leaf, or the one before: up to where there is a neighbour, and down.
    static void turn(const std::byte* base, way& on, int direction) noexcept {
        for (; on.depth > 0; --on.depth) {
            const std::byte* node = at<inner>(base, on.node[on.depth - 1]);
            const int child = on.child[on.depth - 1] + direction;
            if (child < 0 || child >= static_cast<int>(ordered::count_of(node))) continue;
            on.child[on.depth - 1] = static_cast<std::uint16_t>(child);
            follow(base, on, child_at(node, static_cast<unsigned>(child)), direction < 0);
            on.turns += direction;
            return;
        }
        on = {};
    }

    template <form Form> static parts write(shadow& to, const draft<Form>& what, bool at_end);
    static ref rise(shadow& to, const way& from, parts now, given_up& gone, bool shrunk);
    template <form Form>
    static bool merge(shadow& to, const std::byte* parent, unsigned& child, unsigned level,
                      parts& now, given_up& gone);
    static void erase_at(shadow& to, std::uint64_t& word, const way& from, unsigned erased);
};

/// An entry on its way into a node: where its slots are.
template <element Key, element Value, class Compare> struct bplus_tree<Key, Value, Compare>::item {
    const std::byte* key;
    const std::byte* second;
};

/// A node to be, or two: its entries, in order.
template <element Key, element Value, class Compare>
template <ordered::form Form>
struct bplus_tree<Key, Value, Compare>::draft {
    std::array<item, Form.capacity() + 1> items;
    unsigned count = 0;

    void add(const std::byte* key, const std::byte* second) noexcept {
        assert(count < items.size());
        items[count++] = {key, second};
    }
    void add(const std::byte* key, const ref& child) noexcept {
        add(key, reinterpret_cast<const std::byte*>(&child));
    }
    /// Entries of a node.
    void add(const std::byte* node, unsigned from, unsigned upto) noexcept {
        for (; from < upto; ++from)
            add(key_place<Form>(node, from), second_place<Form>(node, from));
    }
    // [make]
    ref make(shadow& to, unsigned from, unsigned upto) const {
        const std::uint32_t entries = upto - from;
        const ref made = to.make(form::aligned(Form.bytes(entries), 64)); // starts a line
        if (made == 0) return 0;
        auto* node = to.at<std::byte>(made);
        std::memcpy(node, &entries, sizeof entries);
        std::byte* key = key_place<Form>(node, 0);
        std::byte* second = node + Form.seconds(entries);
        for (; from < upto; ++from, key += Form.key.bytes, second += Form.second.bytes) {
            std::memcpy(key, items[from].key, Form.key.bytes);
            std::memcpy(second, items[from].second, Form.second.bytes);
        }
        return Form.is_leaf ? made | ordered::leaf_bit : made;
    }
    // [/make]
};

/// What comes in a node's place: none, one, or two and the key that parts them.
template <element Key, element Value, class Compare>
struct bplus_tree<Key, Value, Compare>::parts {
    ref first = 0;
    ref second = 0;
    alignas(Key) std::byte key[std::max<std::size_t>(key_slot::form.bytes, 1)];
};

// [given_up]
/// What an update gives up, gathered from the leaf up and told from the top down: the core wants
/// parents before children.
template <element Key, element Value, class Compare>
class bplus_tree<Key, Value, Compare>::given_up {
public:
    void node(ref node, unsigned level) noexcept { add(node, context_of(node, level)); }
    /// What an element's slot names, if it names anything.
    template <class Slot> void slot(const std::byte* at) noexcept {
        if constexpr (Slot::form.holds_ref) add(Slot::blob_of(at), blob_context);
    }
    void tell(shadow& to) {
        while (count_ > 0) {
            --count_;
            to.replaced(what_[count_].node, what_[count_].context);
        }
    }

private:
    struct one {
        ref node;
        std::uint32_t context;
    };
    void add(ref node, std::uint32_t context) noexcept {
        assert(count_ < what_.size());
        what_[count_++] = {node, context};
    }

    // A leaf's entries and itself; for a level above two children, two keys' blobs at most, itself.
    std::array<one, 2 * leaf.capacity() + 1 + 5 * ordered::levels_max> what_;
    unsigned count_ = 0;
};
// [/given_up]

/// 'at_end': the node grew behind its last entry. Then a split leaves it full: keys often come in
/// order.
template <element Key, element Value, class Compare>
template <ordered::form Form>
auto bplus_tree<Key, Value, Compare>::write(shadow& to, const draft<Form>& what, bool at_end)
    -> parts {
    parts made;
    const unsigned count = what.count;
    const unsigned first = count <= Form.capacity() ? count : at_end ? count - 1 : count / 2;
    if (count > 0) made.first = what.make(to, 0, first);
    if (first == count) return made;
    made.second = what.make(to, first, count);
    const std::byte* parting = what.items[first].key;
    if constexpr (Form.is_leaf) key_slot::write(to, made.key, key_slot::read(to.base(), parting));
    else std::memcpy(made.key, parting, Form.key.bytes); // moves up: (2)
    return made;
}

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
    if (!there && ordered::size_of(word) == 0xffff'ffff) to.fail();

    alignas(Key) std::byte new_key[std::max<std::size_t>(leaf.key.bytes, 1)];
    alignas(Value) std::byte new_value[std::max<std::size_t>(leaf.second.bytes, 1)];
    if (!there) key_slot::write(to, new_key, key);
    value_slot::write(to, new_value, value);

    const std::byte* old = at<leaf>(to.base(), found.leaf);
    const unsigned count = found.leaf == 0 ? 0 : ordered::count_of(old);
    draft<leaf> next;
    given_up gone;
    next.add(old, 0, found.entry);
    next.add(there ? key_place<leaf>(old, found.entry) : new_key, new_value);
    next.add(old, found.entry + there, count);
    if (there) gone.template slot<value_slot>(second_place<leaf>(old, found.entry));
    if (found.leaf != 0) gone.node(found.leaf, found.depth);

    const parts leaves = write(to, next, found.entry == count);
    const ref top = rise(to, found, leaves, gone, false);
    if (to.failed()) return false;
    word = ordered::word_of(top, ordered::size_of(word) + !there);
    return !there;
}
// [/insert]

// [rise]
/// Puts 'now' in the place of the way's leaf, and what that makes of its parent in the parent's
/// place, up to the top, which is returned. A parent that this shadow made is changed as it is.
template <element Key, element Value, class Compare>
ref bplus_tree<Key, Value, Compare>::rise(shadow& to, const way& from, parts now, given_up& gone,
                                          bool shrunk) {
    for (unsigned level = from.depth; level-- > 0 && !to.failed();) {
        const ref old = from.node[level];
        const std::byte* node = at<inner>(to.base(), old);
        const unsigned count = ordered::count_of(node);
        unsigned child = from.child[level];
        bool merged = false; // the child after 'child' is in it too
        if (shrunk && now.first != 0)
            merged = is_leaf(now.first) ? merge<leaf>(to, node, child, level + 1, now, gone)
                                        : merge<inner>(to, node, child, level + 1, now, gone);
        if (to.failed()) break;
        if (!merged && now.first != 0 && now.second == 0 && to.fresh(old)) {
            std::memcpy(to.at<std::byte>(old) + (second_place<inner>(node, child) - node),
                        &now.first, sizeof(ref));
            gone.tell(to);
            return from.node[0]; // whoever names a fresh node is fresh too
        }
        draft<inner> next;
        next.add(node, 0, child);
        if (now.first != 0) next.add(key_place<inner>(node, child), now.first);
        else if (count > 1)
            gone.template slot<key_slot>(key_place<inner>(node, std::max(child, 1U)));
        if (now.second != 0) next.add(now.key, now.second);
        next.add(node, child + 1 + merged, count);
        gone.node(old, level);
        now = write(to, next, child + 1 == count);
    }
    if (now.second != 0) {
        if (from.depth == ordered::levels_max) to.fail();
        draft<inner> top;
        top.add(now.key, now.first); // whatever key: (2)
        top.add(now.key, now.second);
        now.first = top.make(to, 0, 2);
    }
    if (to.failed()) return 0;
    gone.tell(to);
    ref top = now.first;
    while (shrunk && top != 0 && !is_leaf(top) && to.fresh(top) &&
           ordered::count_of(at<inner>(to.base(), top)) == 1) {
        const ref only = child_at(at<inner>(to.base(), top), 0);
        to.replaced(top);
        top = only;
    }
    return top;
}
// [/rise]

/// (3): 'now' is to be child 'child' of this parent, at this level. Whether it took in a neighbour:
/// then it is to be both, and 'child' the left one.
template <element Key, element Value, class Compare>
template <ordered::form Form>
bool bplus_tree<Key, Value, Compare>::merge(shadow& to, const std::byte* parent, unsigned& child,
                                            unsigned level, parts& now, given_up& gone) {
    const unsigned count = ordered::count_of(at<Form>(to.base(), now.first));
    if (count > Form.capacity() / 4) return false;
    for (const bool is_left : {false, true}) {
        const unsigned right = is_left ? child + 1 : child;
        if (right == 0 || right == ordered::count_of(parent)) continue;
        const ref beside = child_at(parent, is_left ? right : right - 1);
        const std::byte* a = at<Form>(to.base(), is_left ? now.first : beside);
        const std::byte* b = at<Form>(to.base(), is_left ? beside : now.first);
        const unsigned in_a = ordered::count_of(a), in_b = ordered::count_of(b);
        const bool alike = is_leaf(beside) == Form.is_leaf && in_a != 0 && in_b != 0;
        if (!alike) to.fail_damaged();
        if (!alike || in_a + in_b > Form.capacity() * 3 / 4) continue;
        draft<Form> both;
        both.add(a, 0, in_a);
        const std::byte* parting = key_place<inner>(parent, right);
        if constexpr (Form.is_leaf) gone.template slot<key_slot>(parting);
        else both.add(parting, second_place<Form>(b, 0)); // moves down: (2)
        both.add(b, Form.is_leaf ? 0 : 1, in_b);
        gone.node(now.first, level);
        gone.node(beside, level);
        now = write(to, both, false);
        child = right - 1;
        return true;
    }
    return false;
}

/// Erases entries of one leaf. Requires: that it has them.
template <element Key, element Value, class Compare>
void bplus_tree<Key, Value, Compare>::erase_at(shadow& to, std::uint64_t& word, const way& from,
                                               unsigned erased) {
    const std::byte* old = at<leaf>(to.base(), from.leaf);
    if (ordered::size_of(word) < erased) return to.fail_damaged();
    const unsigned rest = from.entry + erased;
    assert(rest <= ordered::count_of(old));
    draft<leaf> next;
    given_up gone;
    next.add(old, 0, from.entry);
    next.add(old, rest, ordered::count_of(old));
    for (unsigned i = from.entry; i < rest; ++i) {
        gone.template slot<key_slot>(key_place<leaf>(old, i));
        gone.template slot<value_slot>(second_place<leaf>(old, i));
    }
    gone.node(from.leaf, from.depth);
    const ref top = rise(to, from, write(to, next, false), gone, true);
    if (!to.failed()) word = ordered::word_of(top, ordered::size_of(word) - erased);
}

template <element Key, element Value, class Compare>
template <class Query>
bool bplus_tree<Key, Value, Compare>::erase(shadow& to, std::uint64_t& word, const Query& wanted) {
    const way found = descend<bound::lower>(to.base(), ordered::top_of(word), wanted);
    if (found.damaged) to.fail_damaged();
    if (!is(to.base(), found, wanted)) return false;
    erase_at(to, word, found, 1);
    return !to.failed();
}

template <element Key, element Value, class Compare>
std::size_t bplus_tree<Key, Value, Compare>::erase(shadow& to, std::uint64_t& word, key_view from,
                                                   key_view upto) {
    const Key low(from), high(upto); // they may be keys of nodes that are given up on the way
    const auto before = [&](key_view key) { return bool(Compare{}(key, high)); };
    std::size_t erased = 0;
    while (!to.failed()) { // leaf by leaf: the nodes that one step makes the next changes
        const way first = find_bound<bound::lower>(to.base(), ordered::top_of(word), low);
        if (first.leaf == 0) break;
        const unsigned end =
            search<leaf>(to.base(), at<leaf>(to.base(), first.leaf), first.entry, before);
        if (end == first.entry) break;
        erase_at(to, word, first, end - first.entry);
        erased += end - first.entry;
    }
    return erased;
}

} // namespace hf::mod::detail
