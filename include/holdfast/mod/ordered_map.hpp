// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::ordered_map: a durable map in the order of its keys. Every update is one failure-atomic
// section with one ordering point. Compare std::map; mod::map is like std::unordered_map.
//                                                            Source: MOD §4.1-4.3.
//
//     auto prices = *hf::mod::ordered_map<std::uint64_t, double>::open(pool, {"prices"});
//     prices.insert(20261121, 17.5);                   // durable when the next update returns
//     for (auto [day, price] : prices.range(20261101, 20261201)) …   // November
//     prices.erase(0, 20260101);                       // all before this year, as one
//     auto then = prices.snapshot();                   // stays as it is, readable beside writers
//
// Keys, values, versions, batches and commits are as in <holdfast/mod/map.hpp>. Iterators go both
// ways. They, and what they and get() lead to, are valid until the handle's next update; those of a
// version, as long as it lives.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/bplus_tree.hpp>
#include <holdfast/mod/detail/keyed.hpp>

namespace hf::mod {

/// A named ordered map in a pool: a handle, cheap to copy. It must not outlive the open pool.
///
/// update() gives its function a batch, which has insert, insert_or_assign, erase, clear and the
/// reading functions; its changes are committed together. snapshot() returns a version: a value
/// with the reading functions, operator[](key) (the value, or Value{}) and the same updates.
/// Updates of a version return another version and leave this one as it is, at no ordering point.
///
/// Threads:  any number may read through handles while no thread writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Compare = less<Key>>
class ordered_map : public detail::keyed_handle<ordered_map<Key, Value, Compare>,
                                                detail::bplus_tree<Key, Value, Compare>> {
    using common = detail::keyed_handle<ordered_map, detail::bplus_tree<Key, Value, Compare>>;

public:
    using key_compare = Compare;
    using typename common::batch;
    using typename common::iterator;
    using typename common::reverse_iterator;
    using typename common::version;
    /// The types by which keys and values are given and read: a const reference, or a
    /// std::string_view.
    using typename common::key_view;
    using typename common::value_view;
    /// The result of get(): a pointer into the pool, or a std::optional<std::string_view>; false
    /// without such a key.
    using typename common::found_value;

    /// result<ordered_map> open(const pool& in, const place& at): the map of this name; created if
    /// it is missing.
    ///
    /// Ordering: 0 points; at most 4 to create it.
    /// Errors:   wrong_layout (another structure, other sizes of keys and values, another identity
    ///           of the order), pool_full, limit_reached, bad_argument.
    using common::open;

    /// result<bool> insert(key_view key, value_view value): inserts the key unless it is there.
    /// Returns whether it is new.
    ///
    /// Cost:     O(log n) new nodes of at most two lines, and a leaf of a few.
    /// Ordering: 1 point, 2 with durability::on_return; 0 when the key is there.
    /// Crash:    the map before the call or after it, never between.
    /// Errors:   pool_full, also for strings that are too long; the map is unchanged.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b.
    using common::insert;
    /// result<bool> insert_or_assign(key_view key, value_view value): inserts the key, or replaces
    /// its value. Returns whether it is new. Otherwise as insert; 1 ordering point also if the key
    /// is there.
    using common::insert_or_assign;
    /// result<bool> erase(key): erases the key. Returns whether it was there. Otherwise as insert;
    /// 0 points if it was not there. result<std::size_t> erase(key_view from, key_view upto):
    /// erases the keys from 'from' to before 'upto'. Returns how many there were. Cost: O(log n)
    /// new nodes, and time for each leaf that loses entries.
    using common::erase;
    /// status clear(): erases all entries. Cost: O(1) new nodes, and time for each old node.
    /// Otherwise as update.
    using common::clear;

    /// status update(change): several updates as one, by change(batch&). If change returns false,
    /// nothing is changed.
    ///
    /// Ordering: 1 point, 2 with durability::on_return; 0 when nothing was changed.
    /// Crash:    all of them or none.
    /// Errors:   pool_full; the map is unchanged.
    using common::update;
    /// version snapshot() const: the map's current version. Cost: O(1). Ordering: 0. Threads: any;
    /// it never waits.
    using common::snapshot;
    /// status commit(const version& next): makes 'next' the map, if the version that it was derived
    /// from is still current.
    ///
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the map before the call or after it.
    /// Errors:   conflict (another commit came first), pool_full; the map is unchanged.
    using common::commit;
    /// void refresh() const: for a process that reads beside a writer (open_options::shared). From
    /// here on reads see the current map, and what was read before is invalid. In other processes
    /// it does nothing.
    using common::refresh;
    /// durability when_durable() const, void set_durability(durability): by_next_section is the
    /// default.
    using common::set_durability;
    using common::when_durable;

    // For authors of structures: the root of this name, its word, the pool's first byte.
    using common::base;
    using common::its_root;
    using common::word;

    /// std::size_t size() const, bool empty() const. Cost: O(1). Ordering: 0, as of all reading
    /// functions.
    using common::empty;
    using common::size;
    /// iterator find(key) const: the key's entry, or end(). bool contains(key) const. std::size_t
    /// count(key) const: 1 or 0. These, get, the bounds and erase also take what the comparison
    /// takes (is_transparent).
    ///
    /// Cost: O(log n) nodes.
    using common::contains;
    using common::count;
    using common::find;
    /// found_value get(key) const: the value of this key, in place. Otherwise as find.
    using common::get;
    /// iterator lower_bound(key) const: the first entry not before the key. upper_bound(key): the
    /// first one behind it. equal_range(key): both. range(from, upto): the entries from 'from' to
    /// before 'upto'; requires that upto is not before from. Cost: O(log n) nodes each.
    using common::equal_range;
    using common::lower_bound;
    using common::range;
    using common::upper_bound;
    /// The entries of the least and of the greatest key. Cost: O(log n) nodes. Requires: not empty.
    using common::first;
    using common::last;
    /// iterator begin() const, end() const: all entries, in the order of keys. Cost: a step is O(1)
    /// on average.
    using common::begin;
    using common::cbegin;
    using common::cend;
    using common::end;
    using common::rbegin;
    using common::rend;

private:
    using ordered_map::keyed_handle::keyed_handle;
};

} // namespace hf::mod
