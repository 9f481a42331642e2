// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::ordered_map: a durable map in the order of its keys, whose every update is one
// failure-atomic section with one ordering point. What mod::map is to std::unordered_map, this is
// to std::map.                                              Source: MOD §4.1-4.3.
//
//     auto prices = *hf::mod::ordered_map<std::uint64_t, double>::open(pool, {"prices"});
//     prices.insert(20261121, 17.5);                   // durable when the next update returns
//     for (auto [day, price] : prices.range(20261101, 20261201)) …   // November
//     prices.erase(0, 20260101);                       // all before this year, as one
//     auto then = prices.snapshot();                   // stays as it is, readable beside writers
//
// Keys, values, versions, batches and commits are as in <holdfast/mod/map.hpp>. Iterators go both
// ways; they and what they and get() lead to are valid until the handle's next update, from a
// version as long as it lives.
#pragma once

#include <holdfast/mod/detail/bplus_tree.hpp>
#include <holdfast/mod/detail/keyed.hpp>
#include <holdfast/mod/store.hpp>

#include <cstddef>

namespace hf::mod {

/// A named ordered map in a pool: a handle, cheap to copy, that lives no longer than the pool is
/// open. size, empty, find, contains, count, get, first, last, lower_bound, upper_bound,
/// equal_range, range, begin, end, rbegin, rend: detail::tree_reading. update, clear, snapshot,
/// commit, when_durable, set_durability: detail::handle. Its batches and versions have its updates:
/// detail::keyed_batch, detail::keyed_version.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Compare = less<Key>>
class ordered_map : public detail::keyed_handle<detail::bplus_tree<Key, Value, Compare>>,
                    public detail::tree_reading<ordered_map<Key, Value, Compare>,
                                                detail::bplus_tree<Key, Value, Compare>> {
    using tree = detail::bplus_tree<Key, Value, Compare>;
    using handle = detail::keyed_handle<tree>;

public:
    using key_compare = Compare;
    using key_view = typename tree::key_view;
    using value_view = typename tree::value_view;
    using typename handle::batch;

    /// The map of this name, made if there is none.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, or other sizes of keys and values, or another
    ///           order's identity), pool_full, limit_reached, bad_argument.
    static result<ordered_map> open(const pool& in, const place& at) {
        return handle::template opened<ordered_map>(in, at, detail::bplus_tree_kind, tree::shape());
    }

    /// Inserts the key with this value, unless it is there. Whether it is new.
    ///
    /// Cost:     O(log n) new nodes of at most two lines, and a leaf of a few.
    /// Ordering: 1 point, 2 with durability::on_return; 0 when the key is there.
    /// Crash:    the map before the call or after it, never between.
    /// Errors:   pool_full; the map is unchanged. Also for strings that are too long.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b.
    result<bool> insert(key_view key, value_view value) {
        return this->change([&](batch& to) { return to.insert(key, value); });
    }
    /// Inserts the key, or gives it another value. Whether it is new. Otherwise as insert.
    result<bool> insert_or_assign(key_view key, value_view value) {
        return this->change([&](batch& to) { return to.insert_or_assign(key, value); });
    }
    /// Erases the key. Whether it was there. Otherwise as insert.
    result<bool> erase(key_view key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    template <class Query>
        requires(tree::template looks_up<Query>)
    result<bool> erase(const Query& key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    /// Erases the keys from one on, up to another, which stays. How many there were. O(log n) new
    /// nodes, and time for each leaf that loses entries. Otherwise as insert.
    result<std::size_t> erase(key_view from, key_view upto) {
        return this->change([&](batch& to) { return to.erase(from, upto); });
    }
    /// Erases all. Cost: O(1) new nodes, and time for each node there was.
    using handle::clear;

private:
    using handle::handle;
};

} // namespace hf::mod
