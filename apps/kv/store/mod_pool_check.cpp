// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pool_check.hpp"

#include <holdfast/author/blocks.hpp>
#include <holdfast/author/mod/store.hpp>

#include <cstddef>
#include <unordered_set>

namespace hf::kv {

pool_findings check_pool(store& items) {
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

} // namespace hf::kv
