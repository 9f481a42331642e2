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

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/bplus_tree.hpp>
#include <holdfast/mod/detail/keyed.hpp>

namespace hf::mod {

/// A named ordered map in a pool: a handle, cheap to copy, that lives no longer than the pool is
/// open. open, insert, insert_or_assign, erase: detail::keyed_handle. size, empty, find, contains,
/// count, get, first, last, lower_bound, upper_bound, equal_range, range, begin, end, rbegin, rend:
/// detail::tree_reading. update, clear, snapshot, commit, when_durable, set_durability:
/// detail::handle. Its batches and versions have its updates: detail::keyed_batch,
/// detail::keyed_version.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Compare = less<Key>>
class ordered_map : public detail::keyed_handle<ordered_map<Key, Value, Compare>,
                                                detail::bplus_tree<Key, Value, Compare>> {
public:
    using key_compare = Compare;

private:
    using ordered_map::keyed_handle::keyed_handle;
};

} // namespace hf::mod
