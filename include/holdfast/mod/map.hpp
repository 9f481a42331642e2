// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::map: a durable unordered map, whose every update is one failure-atomic section with one
// ordering point.                                             Source: MOD §4.1-4.3.
//
//     auto ages = *hf::mod::map<std::string, int>::open(pool, {"ages"});
//     ages.insert("Ada", 36);                          // durable when the next update returns
//     if (const int* age = ages.get("Ada")) …          // read in place
//     ages.update([](auto& batch) { batch.erase("Ada"); batch.insert("Bob", 41); });  // one commit
//     auto then = ages.snapshot();                     // stays as it is, readable beside writers
//     auto tried = then.insert("Eve", 29).erase("Bob");   // pure: a version that only we know
//     auto status = ages.commit(tried);                // conflict, if somebody was faster
//
// Keys and values are trivially copyable (up to 64 KiB, aligned to 16 at most) or std::string, of
// which a key and a value take up to 1 GiB together. Strings are given and read as
// std::string_view. Iteration is in the order of hashes; iterators and what they and get() lead to
// are valid until the handle's next update, from a version as long as it lives.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/detail/keyed.hpp>

namespace hf::mod {

/// A named map in a pool: a handle, cheap to copy, that lives no longer than the pool is open.
///
/// A batch, which update() gives to its function, has insert, insert_or_assign, erase, clear and
/// all that reads; what it changes is committed together. A version, which snapshot() returns, is a
/// value: it has the same updates, which return another version and leave this one as it is, at no
/// ordering point, operator[](key) (the value, or Value{}), and all that reads.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
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
    /// How keys and values are given and read: a const reference, or a std::string_view.
    using typename common::key_view;
    using typename common::value_view;
    /// What get() gives: a pointer into the pool, or a std::optional<std::string_view>; false
    /// without such a key.
    using typename common::found_value;

    /// result<map> open(const pool& in, const place& at): the map of this name, made when it is
    /// missing.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, other sizes of keys and values, another identity
    ///           of the hash), pool_full, limit_reached, bad_argument.
    using common::open;

    /// result<bool> insert(key_view key, value_view value): inserts the key unless it is there.
    /// Whether it is new.
    ///
    /// Cost:     O(log16 n) new nodes, each a line but the last.
    /// Ordering: 1 point, 2 with durability::on_return; 0 when the key is there.
    /// Crash:    the map before the call or after it, never between.
    /// Errors:   pool_full, also for strings that are too long; the map is unchanged.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b.
    using common::insert;
    /// result<bool> insert_or_assign(key_view key, value_view value): inserts the key, or gives it
    /// another value. Whether it is new. Otherwise as insert; it has its ordering point whether or
    /// not the key is there.
    using common::insert_or_assign;
    /// result<bool> erase(key): erases the key. Whether it was there. Otherwise as insert; 0 points
    /// when it was not there.
    using common::erase;
    /// status clear(): erases all. Cost: O(1) new nodes. Otherwise as update.
    using common::clear;

    /// status update(change): several updates as one. change(batch&) may return false: then nothing
    /// is changed.
    ///
    /// Ordering: 1 point, 2 with durability::on_return; 0 when nothing was changed.
    /// Crash:    all of them or none.
    /// Errors:   pool_full; the map is unchanged.
    using common::update;
    /// version snapshot() const: the map as it is now, kept. Cost: O(1). Ordering: 0. Threads: any;
    /// it never waits.
    using common::snapshot;
    /// status commit(const version& next): makes 'next' the map, if what it was derived from is
    /// still current.
    ///
    /// Ordering: 1 point, 2 with durability::on_return.
    /// Crash:    the map before the call or after it.
    /// Errors:   conflict (another commit came first), pool_full; the map is unchanged.
    using common::commit;
    /// void refresh() const: in a process that reads beside a writer (open_options::shared) reads
    /// see the map of now from here on, and what was read before is invalid. Elsewhere it does
    /// nothing.
    using common::refresh;
    /// durability when_durable() const, void set_durability(durability): by_next_section to begin
    /// with.
    using common::set_durability;
    using common::when_durable;

    // For authors of structures: the root of this name, its word, the pool's first byte.
    using common::base;
    using common::its_root;
    using common::word;

    /// std::size_t size() const, bool empty() const. Cost: O(1). Ordering: 0, as all that reads.
    using common::empty;
    using common::size;
    /// iterator find(key) const: the key's entry, or end(). bool contains(key) const. std::size_t
    /// count(key) const: 1 or 0. Beside keys they take what the hash and the comparison take
    /// (is_transparent in both). So does erase.
    ///
    /// Cost: O(log16 n) lines.
    using common::contains;
    using common::count;
    using common::find;
    /// found_value get(key) const: the value of this key, where it lies. Otherwise as find.
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
