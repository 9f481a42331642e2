// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hash_map<Key, Value>: 256 growing hash tables with a reader-writer lock each (fewer when small
// pools matter more than threads). Plain code: the engine it is failure-atomic with is the
// including file's.
//
//   (1) A key lives in the instance that its hash's upper eight bits name, at most once.
//   (2) An operation takes its instance's lock and calls one failure-atomic function, which
//       searches and changes. The lock is held until that has returned (strong strict two-phase
//       locking).
//   (3) A lock shares no cache line with what a section stores to: it is never flushed.
//
// Source: Clobber §5.1, the hash map with 256 instances.
#pragma once

#include <structures/hash_table.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <type_traits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty map.
///
/// Requires: Key compares by its bytes; Key and Value are trivially copyable.
template <class Key, class Value, std::size_t Instances = 256> class hash_map {
    static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);
    static_assert(std::has_unique_object_representations_v<Key>,
                  "keys compare by their bytes: expected a type without padding or floating point");
    static_assert(alignof(Key) <= 16 && alignof(Value) <= 16);

public:
    static constexpr std::size_t instance_count = Instances;
    static_assert(Instances > 0 && Instances <= 256 && (Instances & (Instances - 1)) == 0);

    /// Inserts 'key', or gives it another value.
    ///
    /// Ordering: redo 1 point, or 3 over what another thread has just left; clobber and undo 2, and
    ///           one more for each word that is overwritten.
    /// Crash:    the old value, or none, or the new one.
    /// Errors:   false when the pool is full; the map is unchanged.
    bool insert(const Key& key, const Value& value) noexcept {
        const std::uint64_t hash = hash_of(key);
        instance& in = instance_of(hash);
        const std::unique_lock held{in.lock};
        return put(&in.table, hash, key, &value);
    }

    /// Copies the value of 'key' to '*value' (null: only looks). False without such a key.
    ///
    /// Ordering: 0 points.
    bool find(const Key& key, Value* value) const noexcept {
        const std::uint64_t hash = hash_of(key);
        const instance& in = instance_of(hash);
        const std::shared_lock held{in.lock};
        const node* found = find_node(&in.table, key, hash);
        if (found != nullptr && value != nullptr) *value = found->value;
        return found != nullptr;
    }

    /// Removes 'key'; false when it is not there.
    ///
    /// Ordering: as insert().
    bool erase(const Key& key) noexcept {
        const std::uint64_t hash = hash_of(key);
        instance& in = instance_of(hash);
        const std::unique_lock held{in.lock};
        return take(&in.table, hash, key);
    }

    /// Keys in the map; exact while nobody writes.
    std::uint64_t size() const noexcept {
        std::uint64_t keys = 0;
        for (const instance& in : instances_) {
            const std::shared_lock held{in.lock};
            keys += structures::size(&in.table);
        }
        return keys;
    }

    /// Grows the instances so that 'keys' keys in all need next to no splits.
    ///
    /// Ordering: a few points per instance, more when the map is not empty.
    /// Errors:   false when the pool is full; the map's content is unchanged.
    bool reserve(std::uint64_t keys) noexcept {
        for (instance& in : instances_) {
            const std::unique_lock held{in.lock};
            const std::uint64_t share = (keys + instance_count - 1) / instance_count;
            while (!reserved(&in.table, share))
                if (!reserve_table(&in.table, share)) return false;
        }
        return true;
    }

    /// Calls f(key, value) for every key, one instance at a time under its shared lock.
    template <class F> void for_each(F f) const {
        for (const instance& in : instances_) {
            const std::shared_lock held{in.lock};
            structures::for_each(&in.table, [&](const hash_node* each) {
                const node* one = static_cast<const node*>(each);
                f(one->key, one->value);
            });
        }
    }

    /// Calls f(block) for every block of the pool that the map has: nodes and bucket segments. For
    /// checks: while nobody writes; takes no lock.
    template <class F> void for_each_block(F f) const {
        for (const instance& in : instances_) {
            structures::for_each(&in.table, [&](const hash_node* each) { f(each); });
            for (const hash_node* const* segment : in.table.segments)
                if (segment != nullptr) f(segment);
        }
    }

    /// Whether the invariants hold, those of the tables included. Takes each lock shared.
    bool check() const noexcept {
        for (const instance& in : instances_) {
            const std::shared_lock held{in.lock};
            if (!structures::check(&in.table)) return false;
            bool sound = true;
            structures::for_each(&in.table, [&](const hash_node* each) {
                const node* one = static_cast<const node*>(each);
                const std::uint64_t hash = hash_of(one->key);
                sound = sound && hash == one->hash && &instance_of(hash) == &in &&
                        find_node(&in.table, one->key, hash) == one;
            });
            if (!sound) return false;
        }
        return true;
    }

private:
    struct node : hash_node {
        Key key;
        Value value;
    };

    // (3), wherever the map starts: pools align to 16 bytes only.
    struct instance {
        std::byte before[48];
        mutable hf::shared_mutex lock;
        std::byte after[48];
        hash_table table;
    };

    static std::uint64_t hash_of(const Key& key) noexcept { return XXH3_64bits(&key, sizeof(Key)); }
    instance& instance_of(std::uint64_t hash) noexcept {
        return instances_[(hash >> 56) % Instances];
    }
    const instance& instance_of(std::uint64_t hash) const noexcept {
        return instances_[(hash >> 56) % Instances];
    }

    static node* find_node(const hash_table* table, const Key& key, std::uint64_t hash) noexcept {
        for (hash_node* each = chain(table, hash); each != nullptr && each->hash == hash;
             each = each->next)
            if (std::memcmp(&static_cast<node*>(each)->key, &key, sizeof(Key)) == 0)
                return static_cast<node*>(each);
        return nullptr;
    }

    HF_TXFUNC static bool put(hash_table* table, std::uint64_t hash, HF_BY_VALUE Key key,
                              const Value* value) noexcept {
        const Value* kept = hf::vlog_preserve(value);
        if (node* old = find_node(table, key, hash)) {
            old->value = *kept;
            return true;
        }
        node* fresh = hf::make<node>(hash_node{nullptr, hash}, key, *kept);
        if (fresh == nullptr) return false;
        if (link(table, fresh)) return true;
        hf::destroy(fresh);
        return false;
    }

    HF_TXFUNC static bool take(hash_table* table, std::uint64_t hash,
                               HF_BY_VALUE Key key) noexcept {
        node* old = find_node(table, key, hash);
        if (old == nullptr) return false;
        unlink(table, old);
        hf::destroy(old);
        return true;
    }

    HF_TXFUNC static bool reserve_table(hash_table* table, std::uint64_t nodes) noexcept {
        return structures::reserve(table, nodes);
    }

    instance instances_[instance_count];
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
