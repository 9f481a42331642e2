// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mod::set: a durable unordered set, whose every update is one failure-atomic section with one
// ordering point: mod::map without values.                  Source: MOD §4.1-4.3.
//
//     auto seen = *hf::mod::set<std::uint64_t>::open(pool, {"seen"});
//     if (*seen.insert(42)) …                          // durable when the next update returns
//     auto then = seen.snapshot();                     // stays as it is, readable beside writers
//
// Keys are as map's. Iteration is in the order of hashes.
#pragma once

#include <holdfast/author/mod/store.hpp>
#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/detail/keyed.hpp>

namespace hf::mod {

/// A named set in a pool: a handle, cheap to copy, that lives no longer than the pool is open.
/// open, insert, erase: detail::keyed_handle. size, empty, find, contains, count, begin, end:
/// detail::trie_reading. update, clear, snapshot, commit, when_durable, set_durability:
/// detail::handle. Its batches and versions have its updates: detail::keyed_batch,
/// detail::keyed_version.
///
/// Threads:  as map.
template <element Key, class Hash = hash<Key>, class Equal = equal_to<Key>>
class set : public detail::keyed_handle<set<Key, Hash, Equal>,
                                        detail::trie<Key, detail::nothing, Hash, Equal>> {
public:
    using hasher = Hash;
    using key_equal = Equal;

private:
    using set::keyed_handle::keyed_handle;
};

} // namespace hf::mod
