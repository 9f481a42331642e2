// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pool_check.hpp"

#include <holdfast/author/blocks.hpp>

#include <cstddef>
#include <unordered_set>

namespace hf::kv {

pool_findings check_pool(store& items) {
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

} // namespace hf::kv
