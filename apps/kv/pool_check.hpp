// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests: whether a store's pool is whole, and its allocator's account what the root reaches.
#pragma once

#include "store.hpp"

#include <holdfast/alloc.hpp>

#include <cstdint>
#include <unordered_set>

namespace hf::kv {

struct pool_findings {
    std::uint64_t items = 0;
    std::uint64_t bad_tables = 0; // instances whose chains or counts do not hold
    std::uint64_t bad_items = 0;  // in a table that is not the key's, or larger than their block
    std::uint64_t leaked = 0;     // allocated blocks that nothing reaches
    std::uint64_t dangling = 0;   // reached blocks that are not allocated

    bool whole() const noexcept { return bad_tables + bad_items + leaked + dangling == 0; }
};

#ifdef HF_KV_MOD

/// Requires: nobody else uses the store meanwhile.
inline pool_findings check_pool(store& items) {
    struct context {
        pool_findings found;
        std::unordered_set<const void*> reached;
    } c;
    mod::store& kept = mod::store::in(items.pool());
    if (!kept.wait_for_trace().ok() || !kept.verify().ok()) ++c.found.bad_tables;
    if (!items.whole()) ++c.found.bad_items;
    c.found.items = items.item_count();
    kept.for_each_block(
        [](void* to, const void* block) { static_cast<context*>(to)->reached.insert(block); }, &c);
    for_each_block(
        items.pool(),
        [](void* to, const void* block, std::size_t) {
            auto& at = *static_cast<context*>(to);
            if (at.reached.erase(block) == 0) ++at.found.leaked;
        },
        &c);
    c.found.dangling = c.reached.size();
    return c.found;
}

#else

/// Requires: nobody else uses the store meanwhile.
inline pool_findings check_pool(store& items) {
    if (!items.look_through().ok()) return {.bad_tables = items.damaged_instances()};
    hf::pool& pool = items.pool();
    auto* const root = pool.root<kv_root>();
    struct context {
        pool_findings found;
        std::unordered_set<const void*> reached, items;
    } c;
    c.reached.insert(root);
    for (instance& in : root->instances) {
        if (!structures::check(&in.table)) {
            ++c.found.bad_tables;
            continue;
        }
        structures::for_each(&in.table, [&](structures::hash_node* node) {
            ++c.found.items;
            c.reached.insert(node);
            c.items.insert(node);
            if (&instance_of(*root, node->hash) != &in) ++c.found.bad_items;
        });
        for (auto* segment : in.table.segments)
            if (segment != nullptr) c.reached.insert(segment);
    }
    for_each_block(
        pool,
        [](void* to, const void* block, std::size_t bytes) {
            auto& at = *static_cast<context*>(to);
            if (at.reached.erase(block) == 0) ++at.found.leaked;
            if (!at.items.contains(block)) return;
            const auto& it = *static_cast<const item*>(block);
            if (item_bytes(it.key_bytes, it.value_bytes) > bytes) ++at.found.bad_items;
        },
        &c);
    c.found.dangling = c.reached.size();
    return c.found;
}

#endif

} // namespace hf::kv
