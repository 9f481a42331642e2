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

#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/detail/keyed.hpp>
#include <holdfast/mod/store.hpp>

namespace hf::mod {

/// A named set in a pool: a handle, cheap to copy, that lives no longer than the pool is open.
/// size, empty, find, contains, count, begin, end: detail::trie_reading. update, clear, snapshot,
/// commit, when_durable, set_durability: detail::handle. Its batches and versions have its updates:
/// detail::keyed_batch, detail::keyed_version.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, class Hash = hash<Key>, class Equal = equal_to<Key>>
class set : public detail::keyed_handle<detail::trie<Key, detail::nothing, Hash, Equal>>,
            public detail::trie_reading<set<Key, Hash, Equal>,
                                        detail::trie<Key, detail::nothing, Hash, Equal>> {
    using trie = detail::trie<Key, detail::nothing, Hash, Equal>;
    using handle = detail::keyed_handle<trie>;

public:
    using hasher = Hash;
    using key_equal = Equal;
    using key_view = typename trie::key_view;
    using typename handle::batch;

    /// The set of this name, made if there is none.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, or another size of keys, or another
    ///           hash's identity), pool_full, limit_reached, bad_argument.
    static result<set> open(const pool& in, const place& at) {
        return handle::template opened<set>(in, at, detail::hash_trie_kind, trie::shape());
    }

    /// Inserts the key, unless it is there. Whether it is new.
    ///
    /// Cost:     O(log16 n) new nodes, each a line but the last.
    /// Ordering: 1 point, 2 with durability::on_return; 0 when the key is there.
    /// Crash:    the set before the call or after it, never between.
    /// Errors:   pool_full; the set is unchanged. Also for a string that is too long.
    /// Threads:  writers wait for each other.
    /// Source:   MOD §4.3.1, Fig. 8a-b.
    result<bool> insert(key_view key) {
        return this->change([&](batch& to) { return to.insert(key); });
    }
    /// Erases the key. Whether it was there. Otherwise as insert.
    result<bool> erase(key_view key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }
    template <class Query>
        requires(trie::template looks_up<Query>)
    result<bool> erase(const Query& key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }

private:
    using handle::handle;
};

} // namespace hf::mod
