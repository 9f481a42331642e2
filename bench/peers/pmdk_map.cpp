// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libpmemobj, written as its manual teaches: a chained map of 256 instances, the value inside the
// entry. 'pmdk': one transaction per insertion, TX_ADD of the bucket and the count, as in its own
// hashmap_tx example. 'pmdk-actions': reserve and publish, its cheaper interface; the bucket then
// holds an offset, so that one 8-byte action sets it.
//
// On tmpfs libpmemobj must be told that this is persistent memory, before it initialises, or it
// calls msync: PMEM_IS_PMEM_FORCE=1. In process mode PMEM_NO_FLUSH=1 takes its write-backs away:
// what is left survives a killed process. The command sets both and starts itself again.
#include "../temporary_file.hpp"
#include "chained.hpp"

#include <cstring>
#include <libpmemobj.h>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

struct entry {
    PMEMoid next;
    std::uint64_t key;
    std::byte value[];
};
struct instance {
    PMEMoid buckets; // array of PMEMoid
    std::uint64_t count;
};
struct root_object {
    instance instances[lock_count];
};

template <class T> T* direct(PMEMoid object) { return static_cast<T*>(pmemobj_direct(object)); }

class pmdk_pool {
public:
    pmdk_pool(const map_options& given)
        : value_bytes(given.value_bytes), entry_bytes(sizeof(entry) + given.value_bytes),
          buckets_each(buckets_per_instance(given.keys)), process(given.mode == hf::mode::process),
          file_(given.directory, "pmdk") {
        int yes = given.prefault ? 1 : 0;
        pmemobj_ctl_set(nullptr, "prefault.at_create", &yes);
        pool = pmemobj_create(file_.path().c_str(), "bench", pool_bytes(given), 0600);
        if (pool == nullptr) give_up(std::string("pmemobj_create: ") + pmemobj_errormsg());
        root = direct<root_object>(pmemobj_root(pool, sizeof(root_object)));
        for (instance& in : root->instances)
            if (pmemobj_zalloc(pool, &in.buckets, buckets_each * sizeof(PMEMoid), 1) != 0)
                give_up(std::string("pmemobj_zalloc: ") + pmemobj_errormsg());
    }
    ~pmdk_pool() { pmemobj_close(pool); }

    PMEMoid* bucket(const chained_place& at) const noexcept {
        return direct<PMEMoid>(root->instances[at.instance].buckets) + at.bucket % buckets_each;
    }
    entry* search(const chained_place& at, std::uint64_t key) const noexcept {
        auto* each = direct<entry>(*bucket(at));
        while (each != nullptr && each->key != key) each = direct<entry>(each->next);
        return each;
    }
    map_facts facts() const {
        return {!process, false,
                process ? "libpmemobj with PMEM_NO_FLUSH=1"
                        : "libpmemobj with PMEM_IS_PMEM_FORCE=1"};
    }

    std::size_t value_bytes;
    std::size_t entry_bytes;
    std::uint64_t buckets_each;
    bool process;
    PMEMobjpool* pool = nullptr;
    root_object* root = nullptr;
    instance_locks locks;

private:
    temporary_file file_;
};

class pmdk_map : public map_under_test {
public:
    explicit pmdk_map(const map_options& given) : in_(given) {}
    bool insert(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, in_.buckets_each);
        const std::unique_lock held{in_.locks[at.instance]};
        if (in_.search(at, key) != nullptr) return false;
        return store(at, key, value);
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const chained_place at = place_of(key, in_.buckets_each);
        const std::shared_lock held{in_.locks[at.instance]};
        const entry* found = in_.search(at, key);
        if (found != nullptr) std::memcpy(value, found->value, in_.value_bytes);
        return found != nullptr;
    }
    map_facts facts() const override { return in_.facts(); }

protected:
    virtual bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept = 0;
    pmdk_pool in_;
};

class pmdk_transactions final : public pmdk_map {
    using pmdk_map::pmdk_map;

    bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept override {
        PMEMoid* bucket = in_.bucket(at);
        std::uint64_t* count = &in_.root->instances[at.instance].count;
        volatile bool done = false;
        TX_BEGIN(in_.pool) {
            const PMEMoid fresh = pmemobj_tx_alloc(in_.entry_bytes, 2);
            auto* made = direct<entry>(fresh);
            pmemobj_tx_add_range_direct(bucket, sizeof(PMEMoid));
            pmemobj_tx_add_range_direct(count, sizeof(std::uint64_t));
            made->next = *bucket;
            made->key = key;
            std::memcpy(made->value, value, in_.value_bytes);
            *bucket = fresh;
            ++*count;
        }
        TX_ONCOMMIT { done = true; }
        TX_END
        return done;
    }
};

class pmdk_actions final : public pmdk_map {
    using pmdk_map::pmdk_map;

    bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept override {
        PMEMoid* bucket = in_.bucket(at);
        std::uint64_t* count = &in_.root->instances[at.instance].count;
        pobj_action actions[4];
        const PMEMoid fresh = pmemobj_reserve(in_.pool, &actions[0], in_.entry_bytes, 2);
        if (OID_IS_NULL(fresh)) return false;
        auto* made = direct<entry>(fresh);
        made->next = *bucket;
        made->key = key;
        std::memcpy(made->value, value, in_.value_bytes);
        pmemobj_flush(in_.pool, made, in_.entry_bytes); // publish fences
        std::size_t used = 1;
        pmemobj_set_value(in_.pool, &actions[used++], &bucket->off, fresh.off);
        if (bucket->pool_uuid_lo != fresh.pool_uuid_lo) // a bucket's first entry
            pmemobj_set_value(in_.pool, &actions[used++], &bucket->pool_uuid_lo,
                              fresh.pool_uuid_lo);
        pmemobj_set_value(in_.pool, &actions[used++], count, *count + 1);
        return pmemobj_publish(in_.pool, actions, used) == 0;
    }
};

} // namespace

std::unique_ptr<map_under_test> make_map_pmdk(const map_options& given) {
    return std::make_unique<pmdk_transactions>(given);
}
std::unique_ptr<map_under_test> make_map_pmdk_actions(const map_options& given) {
    return std::make_unique<pmdk_actions>(given);
}

} // namespace hf::bench
