// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// list_map<Key, Value, Buckets>: a hash map of fixed size whose buckets are sorted lists. Plain
// code: the engine it is failure-atomic with is the including file's.
//
//   (1) A key is in the bucket that its hash names.
//   (2) There is no lock a bucket: several threads walk through one.
//
// Source: JUSTDO §7, the map.
#pragma once

#include <structures/sorted_list.hpp>

#include <cstddef>
#include <type_traits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::structures {
inline namespace HF_STRUCTURES_ENGINE {

/// Lives in a pool, as its root or as a member of it. Zero-filled is a valid empty map.
template <class Key, class Value, std::size_t Buckets = 4096> class list_map {
    static_assert(std::has_unique_object_representations_v<Key>,
                  "keys compare by their bytes: expected a type without padding or floating point");

public:
    /// As sorted_list's.
    bool insert(const Key& key, const Value& value) noexcept { return of(key).insert(key, value); }
    bool replace(const Key& key, const Value& value) noexcept {
        return of(key).replace(key, value);
    }
    bool find(const Key& key, Value* value) const noexcept { return of(key).find(key, value); }
    bool erase(const Key& key) noexcept { return of(key).erase(key); }

    /// While nobody changes it; in no order.
    std::uint64_t size() const noexcept {
        std::uint64_t count = 0;
        for (const auto& each : buckets_) count += each.size();
        return count;
    }
    template <class F> void for_each(F f) const {
        for (const auto& each : buckets_) each.for_each(f);
    }
    template <class F> void for_each_block(F f) const {
        for (const auto& each : buckets_) each.for_each_block(f);
    }
    bool check() const noexcept {
        bool sound = true;
        for (const auto& each : buckets_) {
            sound = sound && each.check();
            each.for_each(
                [&](const Key& key, const Value&) { sound = sound && &of(key) == &each; });
        }
        return sound;
    }

private:
    using bucket = sorted_list<Key, Value>;
    bucket& of(const Key& key) noexcept {
        return buckets_[XXH3_64bits(&key, sizeof key) % Buckets];
    }
    const bucket& of(const Key& key) const noexcept {
        return buckets_[XXH3_64bits(&key, sizeof key) % Buckets];
    }
    bucket buckets_[Buckets];
};

} // namespace HF_STRUCTURES_ENGINE
} // namespace hf::structures
