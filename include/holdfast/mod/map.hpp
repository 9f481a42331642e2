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
/// open, insert, insert_or_assign, erase: detail::keyed_handle. size, empty, find, contains, count,
/// get, begin, end: detail::map_reading. update, clear, snapshot, commit, when_durable,
/// set_durability: detail::handle. Its batches and versions have its updates: detail::keyed_batch,
/// detail::keyed_version.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Hash = hash<Key>, class Equal = equal_to<Key>>
class map : public detail::keyed_handle<map<Key, Value, Hash, Equal>,
                                        detail::trie<Key, Value, Hash, Equal>> {
public:
    using hasher = Hash;
    using key_equal = Equal;

private:
    using map::keyed_handle::keyed_handle;
};

} // namespace hf::mod
