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

#include <holdfast/mod/detail/hash_trie.hpp>
#include <holdfast/mod/detail/keyed.hpp>
#include <holdfast/mod/store.hpp>

namespace hf::mod {

/// A named map in a pool: a handle, cheap to copy, that lives no longer than the pool is open.
/// size, empty, find, contains, count, get, begin, end: detail::map_reading. update, clear,
/// snapshot, commit, when_durable, set_durability: detail::handle. Its batches and versions have
/// its updates: detail::keyed_batch, detail::keyed_version.
///
/// Threads:  one that reads through handles, or any number while none writes. Writers wait for each
///           other. snapshot() at any time.
template <element Key, element Value, class Hash = hash<Key>, class Equal = equal_to<Key>>
class map : public detail::keyed_handle<detail::trie<Key, Value, Hash, Equal>>,
            public detail::map_reading<map<Key, Value, Hash, Equal>,
                                       detail::trie<Key, Value, Hash, Equal>> {
    using trie = detail::trie<Key, Value, Hash, Equal>;
    using handle = detail::keyed_handle<trie>;

public:
    using hasher = Hash;
    using key_equal = Equal;
    using key_view = typename trie::key_view;
    using value_view = typename trie::value_view;
    using typename handle::batch;

    /// The map of this name, made if there is none.
    ///
    /// Ordering: 0 points; when it is made 4 at most.
    /// Errors:   wrong_layout (another structure, or other sizes of keys and values, or another
    ///           hash's identity), pool_full, limit_reached, bad_argument.
    static result<map> open(const pool& in, const place& at) {
        return handle::template opened<map>(in, at, detail::hash_trie_kind, trie::shape());
    }

    /// Inserts the key with this value, unless it is there. Whether it is new.
    ///
    /// Cost:     O(log16 n) new nodes, each a line but the last.
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
        requires(trie::template looks_up<Query>)
    result<bool> erase(const Query& key) {
        return this->change([&](batch& to) { return to.erase(key); });
    }

private:
    using handle::handle;
};

} // namespace hf::mod
