// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pmdk.hpp"

#include "../peers/pmdk_pool.hpp"

#include <cstring>

namespace hf::bench::plain {
namespace {

using namespace pmdk;

PMEMobjpool* open_pool = nullptr;

struct entry {
    PMEMoid next;
    std::uint64_t key, value;
};
struct chained_map {
    std::uint64_t buckets, count;
    PMEMoid table; // of PMEMoid
};

PMEMoid* bucket_of(const chained_map* m, std::uint64_t key) {
    return direct<PMEMoid>(m->table) + (key ^ key >> 32) * 0x9e3779b97f4a7c15 % m->buckets;
}

void create(void* root, std::uint64_t room) {
    auto* m = static_cast<chained_map*>(root);
    const bool done = in_transaction(open_pool, [&] {
        snapshot(m);
        m->buckets = room;
        m->table = pmemobj_tx_zalloc(room * sizeof(PMEMoid), 1);
    });
    if (!done) pool_file::fail("create");
}

bool insert(void* root, std::uint64_t key, std::uint64_t value) {
    auto* m = static_cast<chained_map*>(root);
    volatile bool inserted = false;
    const bool done = in_transaction(open_pool, [&] {
        PMEMoid* bucket = bucket_of(m, key);
        for (entry* e = direct<entry>(*bucket); e != nullptr; e = direct<entry>(e->next))
            if (e->key == key) {
                snapshot(&e->value);
                e->value = value;
                return;
            }
        const PMEMoid fresh = pmemobj_tx_alloc(sizeof(entry), 2);
        *direct<entry>(fresh) = {*bucket, key, value};
        snapshot(bucket);
        *bucket = fresh;
        snapshot(&m->count);
        m->count += 1;
        inserted = true;
    });
    if (!done) pool_file::fail("insert");
    return inserted;
}

bool erase(void* root, std::uint64_t key) {
    auto* m = static_cast<chained_map*>(root);
    volatile bool erased = false;
    const bool done = in_transaction(open_pool, [&] {
        PMEMoid* link = bucket_of(m, key);
        for (; !OID_IS_NULL(*link); link = &direct<entry>(*link)->next)
            if (direct<entry>(*link)->key == key) {
                const PMEMoid found = *link;
                snapshot(link);
                *link = direct<entry>(found)->next;
                snapshot(&m->count);
                m->count -= 1;
                pmemobj_tx_free(found);
                erased = true;
                return;
            }
    });
    if (!done) pool_file::fail("erase");
    return erased;
}

void visit(const void* root, void* to, visitor* each) {
    const auto* m = static_cast<const chained_map*>(root);
    for (std::uint64_t b = 0; b < m->buckets; ++b)
        for (const entry* e = direct<entry>(direct<PMEMoid>(m->table)[b]); e != nullptr;
             e = direct<entry>(e->next))
            each(to, e, e->key, e->value);
}

} // namespace

const subject& pmdk_textbook() {
    static constexpr subject own{"textbook chained map",
                                 shape::keyed,
                                 "find, insert",
                                 "erase",
                                 create,
                                 insert,
                                 erase,
                                 visit};
    return own;
}

pmdk_pool::pmdk_pool(const std::string& path, std::uint64_t bytes) {
    int prefault = 1;
    pmemobj_ctl_set(nullptr, "prefault.at_create", &prefault);
    open_pool = pmemobj_create(path.c_str(), "plain", bytes, 0600);
    if (open_pool == nullptr) pool_file::fail("pmemobj_create");
}
pmdk_pool::~pmdk_pool() { pmemobj_close(open_pool); }
void* pmdk_pool::root() const noexcept {
    return direct<void>(pmemobj_root(open_pool, sizeof(chained_map)));
}

} // namespace hf::bench::plain
