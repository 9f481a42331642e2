// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::map: a durable unordered map. Every update is one failure-atomic section with one ordering
// point.                                                      Source: MOD §4.1-4.3.
//
//     auto ages = *hf::mod::map<std::string, int>::open(pool, {"ages"});
//     ages.insert("Ada", 36);                          // durable when the next update returns
//     if (const int* age = ages.get("Ada")) …          // read in place
//     ages.update([](auto& batch) { batch.erase("Ada"); batch.insert("Bob", 41); });  // one commit
//     auto then = ages.snapshot();                     // stays as it is, readable beside writers
//     auto tried = then.insert("Eve", 29).erase("Bob");   // pure: a version that nobody else sees
//     auto status = ages.commit(tried);                // conflict, if another commit came first
//
// Keys and values are trivially copyable (up to 64 KiB, aligned to 16 at most) or std::string; the
// strings of a key and its value take up to 1 GiB together. Strings are given and read as
// std::string_view. Iteration is in the order of hashes. Iterators, and what they and get() lead
// to, are valid until the handle's next update; those of a version, as long as it lives.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/detail/keyed.hpp>

namespace hf::mod {

/// A named map in a pool: a handle, cheap to copy. It must not outlive the open pool.
///
/// update() gives its function a batch, which has insert, insert_or_assign, erase, clear and the
/// reading functions; its changes are committed together. snapshot() returns a version: a value
/// with the reading functions, operator[](key) (the value, or Value{}) and the same updates.
/// Updates of a version return another version and leave this one as it is, at no ordering point.
///
/// Threads:  any number may read through handles while no thread writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Hash = hash<Key>, class Equal = equal_to<Key>>
class map : public detail::keyed_handle<map<Key, Value, Hash, Equal>,
                                        detail::trie<Key, Value, Hash, Equal>> {
    using common = detail::keyed_handle<map, detail::trie<Key, Value, Hash, Equal>>;

public:
    using hasher = Hash;
    using key_equal = Equal;
    using typename common::batch;
    using typename common::iterator;
    using typename common::version;
    /// The types by which keys and values are given and read: a const reference, or a
    /// std::string_view.
    using typename common::key_view;
    using typename common::value_view;
    /// The result of get(): a pointer into the pool, or a std::optional<std::string_view>; false
    /// without such a key.
    using typename common::found_value;

    /// result<map> open(const pool& in, const place& at): the map of this name; created if it is
    /// missing.
    ///
    /// Ordering: 0 points; at most 4 to create it.
    /// Errors:   wrong_layout (another structure, other sizes of keys and values, another identity
    ///           of the hash), pool_full, limit_reached, bad_argument.
    using common::open;

    /// result<bool> insert(key_view key, value_view value): inserts the key unless it is there.
    /// Returns whether it is new.
    ///
    /// Cost:     O(log16 n) new nodes, each a line but the last.
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
    /// 0 points if it was not there.
    using common::erase;
    /// status clear(): erases all entries. Cost: O(1) new nodes. Otherwise as update.
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
    /// count(key) const: 1 or 0. These and erase also take what the hash and the comparison take
    /// (is_transparent in both).
    ///
    /// Cost: O(log16 n) lines.
    using common::contains;
    using common::count;
    using common::find;
    /// found_value get(key) const: the value of this key, in place. Otherwise as find.
    using common::get;
    /// iterator begin() const, end() const: all entries, in the order of hashes. Cost: a step is
    /// O(1) on average.
    using common::begin;
    using common::cbegin;
    using common::cend;
    using common::end;

private:
    using map::keyed_handle::keyed_handle;
};

} // namespace hf::mod
