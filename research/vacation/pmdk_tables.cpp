// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The agency on libpmemobj: four chained hash maps, as in its hashmap_tx example, with all the
// buckets they need from the start; a transaction changes rows in place, each snapshotted before. A
// customer's reservations are a linked list: one more is a new node and the entry's 24 bytes of
// bill and head.
#include "../../apps/hash.hpp"
#include "../peer/pmdk.hpp"
#include "tables.hpp"

#include <bit>

namespace hf::apps::vacation {
namespace {

using pmdk::direct;
using pmdk::snapshot;

struct listed {
    reservation what;
    PMEMoid next;
};
struct account {
    std::uint64_t bill;
    PMEMoid list; // of 'listed', the newest first
};
template <class Value> struct entry {
    PMEMoid next;
    identifier id;
    Value value;
};
struct table {
    PMEMoid buckets;            // array of PMEMoid
    std::uint64_t bucket_count; // a power of two
    std::uint64_t rows;
};
struct root_object {
    std::array<table, all_kinds.size()> offers;
    table customers;
};
constexpr std::uint64_t buckets_type = 1, entry_type = 2, listed_type = 3;

/// A map of the root. The changing functions belong into a transaction.
template <class Value> class chained_map {
public:
    explicit chained_map(table& at) : table_(&at), buckets_(direct<PMEMoid>(at.buckets)) {}

    Value* find(identifier id) const noexcept {
        auto* const found = direct<entry<Value>>(*link_of(id));
        return found == nullptr ? nullptr : &found->value;
    }
    Value* insert(identifier id, const Value& value) noexcept {
        PMEMoid* const bucket = bucket_of(id);
        const PMEMoid fresh = pmemobj_tx_alloc(sizeof(entry<Value>), entry_type);
        auto* const made = direct<entry<Value>>(fresh);
        snapshot(bucket);
        *made = {*bucket, id, value};
        *bucket = fresh;
        snapshot(&table_->rows);
        ++table_->rows;
        return &made->value;
    }
    void erase(identifier id) noexcept {
        PMEMoid* const link = link_of(id);
        const PMEMoid old = *link;
        if (OID_IS_NULL(old)) return;
        snapshot(link);
        *link = direct<entry<Value>>(old)->next;
        pmemobj_tx_free(old);
        snapshot(&table_->rows);
        --table_->rows;
    }
    template <class Visit> void for_each(const Visit& visit) const {
        for (std::uint64_t i = 0; i < table_->bucket_count; ++i)
            for (const auto* each = direct<entry<Value>>(buckets_[i]); each != nullptr;
                 each = direct<entry<Value>>(each->next))
                visit(each->id, each->value);
    }

private:
    PMEMoid* bucket_of(identifier id) const noexcept {
        return &buckets_[apps::hash_of(&id, sizeof id, 0) & (table_->bucket_count - 1)];
    }
    // The link to the entry, or the link that ends the chain.
    PMEMoid* link_of(identifier id) const noexcept {
        PMEMoid* link = bucket_of(id);
        for (auto* each = direct<entry<Value>>(*link); each != nullptr && each->id != id;
             each = direct<entry<Value>>(*link))
            link = &each->next;
        return link;
    }

    table* table_;
    PMEMoid* buckets_;
};

class pmdk_tables final : public stepwise_tables, private transaction {
public:
    pmdk_tables(pmdk::pool_handle opened, root_object& root)
        : pool_(std::move(opened)),
          offers_{chained_map<offer>(root.offers[0]), chained_map<offer>(root.offers[1]),
                  chained_map<offer>(root.offers[2])},
          customers_(root.customers) {}

    status run(const std::function<void(transaction&)>& client) override {
        return pmdk::in_transaction(pool_.get(), [&] { client(*this); });
    }
    void for_each(kind what,
                  const std::function<void(identifier, const offer&)>& visit) const override {
        offers_[static_cast<std::size_t>(what)].for_each(visit);
    }
    void for_each_customer(
        const std::function<void(identifier, std::uint64_t, std::span<const reservation>)>& visit)
        const override {
        std::vector<reservation> list;
        customers_.for_each([&](identifier id, const account& one) {
            copy_list(one, list);
            visit(id, one.bill, list);
        });
    }

private:
    chained_map<offer>& map(kind what) { return offers_[static_cast<std::size_t>(what)]; }
    bool find(kind what, identifier id, offer& found) override {
        const offer* const row = map(what).find(id);
        if (row != nullptr) found = *row;
        return row != nullptr;
    }
    void put(kind what, identifier id, const offer& row) override {
        offer* const old = map(what).find(id);
        if (old == nullptr) {
            map(what).insert(id, row);
            return;
        }
        snapshot(old);
        *old = row;
    }
    void erase(kind what, identifier id) override { map(what).erase(id); }

    static void copy_list(const account& of, std::vector<reservation>& to) {
        to.clear();
        for (const auto* each = direct<listed>(of.list); each != nullptr;
             each = direct<listed>(each->next))
            to.push_back(each->what);
    }
    bool find_customer(identifier id, std::vector<reservation>& found) override {
        const account* const one = customers_.find(id);
        if (one != nullptr) copy_list(*one, found);
        return one != nullptr;
    }
    bool book(identifier id, std::span<const reservation> more) override {
        account* one = customers_.find(id);
        if (one == nullptr) one = customers_.insert(id, {0, OID_NULL});
        else if (!more.empty()) snapshot(one);
        for (const reservation& each : more) {
            const PMEMoid fresh = pmemobj_tx_alloc(sizeof(listed), listed_type);
            *direct<listed>(fresh) = {each, one->list};
            one->list = fresh;
            one->bill += each.price;
        }
        return true;
    }
    void erase_customer(identifier id) override {
        const account* const one = customers_.find(id);
        if (one == nullptr) return;
        PMEMoid each = one->list;
        while (!OID_IS_NULL(each)) {
            const PMEMoid next = direct<listed>(each)->next;
            pmemobj_tx_free(each);
            each = next;
        }
        customers_.erase(id);
    }

    pmdk::pool_handle pool_;
    std::array<chained_map<offer>, all_kinds.size()> offers_;
    chained_map<account> customers_;
};

status make_table(PMEMobjpool* pool, table& at, std::uint32_t rows) {
    if (!OID_IS_NULL(at.buckets)) return {};
    return pmdk::in_transaction(pool, [&] {
        snapshot(&at);
        at.bucket_count = std::bit_ceil(std::uint64_t{rows});
        at.buckets = pmemobj_tx_zalloc(at.bucket_count * sizeof(PMEMoid), buckets_type);
    });
}

} // namespace

result<std::unique_ptr<tables>> open_pmdk(const table_options& options) {
    const std::size_t bytes = (std::size_t{64} << 20) + std::size_t{options.rows} * 4096;
    auto opened = pmdk::open(options.path, "vacation", bytes, options.prefault);
    if (!opened) return opened.error();
    auto* const root = direct<root_object>(pmemobj_root(opened->get(), sizeof(root_object)));
    if (root == nullptr) return pmdk::failed("pmemobj_root");
    for (table* each : {&root->offers[0], &root->offers[1], &root->offers[2], &root->customers})
        if (status made = make_table(opened->get(), *each, options.rows); !made.ok()) return made;
    return std::unique_ptr<tables>(std::make_unique<pmdk_tables>(std::move(*opened), *root));
}

} // namespace hf::apps::vacation
