// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache's sections, plain code: the including file's build chooses the engine. The caller holds
// the cache's lock.
#pragma once

#include <structures/hash_table.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

#include <server/cache.hpp>

namespace hf::apps::server::HF_APPLICATION_BUILD {

struct item : structures::hash_node {
    cache_key key;
    cache_value value;
};

inline item* find(const structures::hash_table* table, const cache_key& key,
                  std::uint64_t hash) noexcept {
    for (auto* each = structures::chain(table, hash); each != nullptr && each->hash == hash;
         each = each->next)
        if (auto* const one = static_cast<item*>(each); one->key == key) return one;
    return nullptr;
}

/// False: the pool is full; the table is unchanged.
HF_TXFUNC inline bool put_item(structures::hash_table* table, std::uint64_t hash, cache_key key,
                               const cache_value* value) noexcept {
    const cache_value* const kept = hf::vlog_preserve(value);
    item* const old = find(table, key, hash);
    item* const fresh = hf::make<item>(structures::hash_node{nullptr, hash}, key, *kept);
    if (fresh == nullptr) return false;
    if (old != nullptr) {
        structures::replace(table, old, fresh);
        hf::destroy(old);
        return true;
    }
    if (structures::link(table, fresh)) return true;
    hf::destroy(fresh);
    return false;
}

/// Gives an empty table its buckets. False: the pool is full.
HF_TXFUNC inline bool reserve_buckets(structures::hash_table* table, std::uint64_t keys) noexcept {
    return structures::reserve(table, keys);
}

} // namespace hf::apps::server::HF_APPLICATION_BUILD
