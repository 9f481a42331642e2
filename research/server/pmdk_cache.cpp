// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cache on libpmemobj: a chained hash map, as in its hashmap_tx example, with all the buckets
// it needs from the start. A set is a transaction: a fresh item takes the old one's place in its
// chain, and what it overwrites is snapshotted before.
#include "../peer/pmdk.hpp"
#include "cache.hpp"

#include <bit>

namespace hf::apps::server {
namespace {

using pmdk::direct;
using pmdk::snapshot;

struct item {
    PMEMoid next;
    cache_key key;
    cache_value value;
};
struct table {
    PMEMoid buckets;            // array of PMEMoid
    std::uint64_t bucket_count; // a power of two
    std::uint64_t items;
};
constexpr std::uint64_t buckets_type = 1, item_type = 2;

class pmdk_cache final : public cache {
public:
    pmdk_cache(pmdk::pool_handle opened, table* at)
        : pool_(std::move(opened)), table_(at), buckets_(direct<PMEMoid>(at->buckets)) {}

    bool set(const cache_key& key, const cache_value& value) override {
        PMEMoid* const link = link_of(key);
        return pmdk::in_transaction(
                   pool_.get(),
                   [&] {
                       const PMEMoid old = *link;
                       const PMEMoid fresh = pmemobj_tx_alloc(sizeof(item), item_type);
                       const bool present = !OID_IS_NULL(old);
                       *direct<item>(fresh) = {present ? direct<item>(old)->next : OID_NULL, key,
                                               value};
                       snapshot(link);
                       *link = fresh;
                       if (present) {
                           pmemobj_tx_free(old);
                       } else {
                           snapshot(&table_->items);
                           ++table_->items;
                       }
                   })
            .ok();
    }
    bool get(const cache_key& key, cache_value& value) const override {
        const item* const found = direct<item>(*link_of(key));
        if (found != nullptr) value = found->value;
        return found != nullptr;
    }
    std::uint64_t size() const override { return table_->items; }

private:
    // The link to the item, or the link that ends the chain.
    PMEMoid* link_of(const cache_key& key) const noexcept {
        PMEMoid* link = &buckets_[hash_of(key) & (table_->bucket_count - 1)];
        for (auto* each = direct<item>(*link); each != nullptr && each->key != key;
             each = direct<item>(*link))
            link = &each->next;
        return link;
    }

    pmdk::pool_handle pool_;
    table* table_;
    PMEMoid* buckets_;
};

} // namespace

result<std::unique_ptr<cache>> make_pmdk_cache(const cache_options& options) {
    const std::size_t bytes = (std::size_t{64} << 20) + options.keys * 512;
    auto opened = pmdk::open(options.path, "server-cache", bytes, false);
    if (!opened) return opened.error();
    auto* const at = direct<table>(pmemobj_root(opened->get(), sizeof(table)));
    if (at == nullptr) return pmdk::failed("pmemobj_root");
    const status made = pmdk::in_transaction(opened->get(), [&] {
        snapshot(at);
        at->bucket_count = std::bit_ceil(options.keys);
        at->buckets = pmemobj_tx_zalloc(at->bucket_count * sizeof(PMEMoid), buckets_type);
    });
    if (!made.ok()) return made;
    return std::unique_ptr<cache>(std::make_unique<pmdk_cache>(std::move(*opened), at));
}

} // namespace hf::apps::server
