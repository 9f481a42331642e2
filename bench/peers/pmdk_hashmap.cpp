// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libpmemobj's hash map, written as its manual teaches: a chained map of 256 instances.
//
//   pmdk          one transaction per operation, the value inside the entry; TX_ADD of the bucket
//                 and the count, as in its own hashmap_tx example
//   pmdk-outside  the same with the value in a second object, as in its key-value examples
//   pmdk-actions  reserve and publish, its cheaper interface; the bucket then holds an offset, so
//                 that one 8-byte action sets it
#include "chained.hpp"
#include "peers.hpp"
#include "pmdk_pool.hpp"

#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

using namespace pmdk;

struct entry {
    PMEMoid next;
    std::uint64_t key;
    std::byte value[]; // or a PMEMoid
};
struct instance {
    PMEMoid buckets; // array of PMEMoid
    std::uint64_t count;
};
struct root_object {
    instance instances[lock_count];
};

class pmdk_hashmap : public map_under_test {
public:
    pmdk_hashmap(const map_options& given, std::size_t payload_bytes)
        : value_bytes_(given.value_bytes), entry_bytes_(sizeof(entry) + payload_bytes),
          buckets_each_(buckets_per_instance(given.keys)), file_(given),
          root_(file_.root<root_object>()) {
        for (instance& in : root_->instances)
            if (OID_IS_NULL(in.buckets) &&
                pmemobj_zalloc(pool(), &in.buckets, buckets_each_ * sizeof(PMEMoid), 1) != 0)
                pool_file::fail("pmemobj_zalloc");
    }
    bool insert(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::unique_lock held{locks_[at.instance]};
        if (search(at, key) != nullptr) return false;
        return store(at, key, value);
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::shared_lock held{locks_[at.instance]};
        const entry* found = search(at, key);
        if (found != nullptr) std::memcpy(value, value_in(found), value_bytes_);
        return found != nullptr;
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::unique_lock held{locks_[at.instance]};
        entry* found = search(at, key);
        return found != nullptr && replace(at, found, value);
    }
    std::uint64_t scan(std::uint64_t, std::uint64_t, void*) noexcept override { return 0; }
    map_facts facts() const override { return file_.facts(); }
    std::optional<reopened> state() const override { return file_.state(); }
    std::optional<memory_use> memory() override {
        std::uint64_t entries = 0;
        for (const instance& in : root_->instances) entries += in.count;
        return file_.memory(entries);
    }

protected:
    virtual bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept = 0;
    virtual bool replace(const chained_place& at, entry* old, const void* value) noexcept = 0;
    virtual const void* value_in(const entry* found) const noexcept { return found->value; }

    PMEMobjpool* pool() const noexcept { return file_.pool(); }
    PMEMoid* bucket(const chained_place& at) const noexcept {
        return direct<PMEMoid>(root_->instances[at.instance].buckets) + at.bucket % buckets_each_;
    }
    std::uint64_t* count(const chained_place& at) const noexcept {
        return &root_->instances[at.instance].count;
    }
    entry* search(const chained_place& at, std::uint64_t key) const noexcept {
        auto* each = direct<entry>(*bucket(at));
        while (each != nullptr && each->key != key) each = direct<entry>(each->next);
        return each;
    }

    std::size_t value_bytes_;
    std::size_t entry_bytes_;
    std::uint64_t buckets_each_;

private:
    pool_file file_;
    root_object* root_;
    instance_locks locks_;
};

class pmdk_inside final : public pmdk_hashmap {
public:
    explicit pmdk_inside(const map_options& given) : pmdk_hashmap(given, given.value_bytes) {}

private:
    bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept override {
        return in_transaction(pool(), [&] {
            const PMEMoid fresh = pmemobj_tx_alloc(entry_bytes_, 2);
            auto* made = direct<entry>(fresh);
            snapshot(bucket(at));
            snapshot(count(at));
            made->next = *bucket(at);
            made->key = key;
            std::memcpy(made->value, value, value_bytes_);
            *bucket(at) = fresh;
            ++*count(at);
        });
    }
    bool replace(const chained_place&, entry* old, const void* value) noexcept override {
        return in_transaction(pool(), [&] {
            snapshot(old->value, value_bytes_);
            std::memcpy(old->value, value, value_bytes_);
        });
    }
};

class pmdk_outside final : public pmdk_hashmap {
public:
    explicit pmdk_outside(const map_options& given) : pmdk_hashmap(given, sizeof(PMEMoid)) {}

private:
    static PMEMoid* value_of(entry* in) noexcept { return reinterpret_cast<PMEMoid*>(in->value); }
    const void* value_in(const entry* found) const noexcept override {
        return direct<std::byte>(*reinterpret_cast<const PMEMoid*>(found->value));
    }
    PMEMoid new_value(const void* value) noexcept {
        const PMEMoid fresh = pmemobj_tx_alloc(value_bytes_, 3);
        std::memcpy(direct<std::byte>(fresh), value, value_bytes_);
        return fresh;
    }
    bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept override {
        return in_transaction(pool(), [&] {
            const PMEMoid fresh = pmemobj_tx_alloc(entry_bytes_, 2);
            auto* made = direct<entry>(fresh);
            *value_of(made) = new_value(value);
            snapshot(bucket(at));
            snapshot(count(at));
            made->next = *bucket(at);
            made->key = key;
            *bucket(at) = fresh;
            ++*count(at);
        });
    }
    bool replace(const chained_place&, entry* old, const void* value) noexcept override {
        return in_transaction(pool(), [&] {
            const PMEMoid fresh = new_value(value);
            pmemobj_tx_free(*value_of(old));
            snapshot(value_of(old));
            *value_of(old) = fresh;
        });
    }
};

class pmdk_actions final : public pmdk_hashmap {
public:
    explicit pmdk_actions(const map_options& given) : pmdk_hashmap(given, given.value_bytes) {}

private:
    // Adds the actions that make 'link' point to 'fresh'.
    std::size_t add_link(pobj_action* actions, std::size_t used, PMEMoid* link, PMEMoid fresh) {
        pmemobj_set_value(pool(), &actions[used++], &link->off, fresh.off);
        if (link->pool_uuid_lo != fresh.pool_uuid_lo) // a bucket's first entry
            pmemobj_set_value(pool(), &actions[used++], &link->pool_uuid_lo, fresh.pool_uuid_lo);
        return used;
    }
    PMEMoid reserve(pobj_action* action, PMEMoid next, std::uint64_t key, const void* value) {
        const PMEMoid fresh = pmemobj_reserve(pool(), action, entry_bytes_, 2);
        if (OID_IS_NULL(fresh)) return fresh;
        auto* made = direct<entry>(fresh);
        made->next = next;
        made->key = key;
        std::memcpy(made->value, value, value_bytes_);
        pmemobj_flush(pool(), made, entry_bytes_); // publish fences
        return fresh;
    }
    bool store(const chained_place& at, std::uint64_t key, const void* value) noexcept override {
        pobj_action actions[4];
        const PMEMoid fresh = reserve(&actions[0], *bucket(at), key, value);
        if (OID_IS_NULL(fresh)) return false;
        std::size_t used = add_link(actions, 1, bucket(at), fresh);
        pmemobj_set_value(pool(), &actions[used++], count(at), *count(at) + 1);
        return pmemobj_publish(pool(), actions, used) == 0;
    }
    // Another entry in the place of the old one.
    bool replace(const chained_place& at, entry* old, const void* value) noexcept override {
        PMEMoid* link = bucket(at);
        while (direct<entry>(*link) != old) link = &direct<entry>(*link)->next;
        pobj_action actions[4];
        const PMEMoid fresh = reserve(&actions[0], old->next, old->key, value);
        if (OID_IS_NULL(fresh)) return false;
        const PMEMoid replaced = *link;
        std::size_t used = add_link(actions, 1, link, fresh);
        pmemobj_defer_free(pool(), replaced, &actions[used++]);
        return pmemobj_publish(pool(), actions, used) == 0;
    }
};

} // namespace

std::unique_ptr<map_under_test> make_pmdk_hashmap(const map_options& given) {
    return std::make_unique<pmdk_inside>(given);
}
std::unique_ptr<map_under_test> make_map_pmdk_outside(const map_options& given) {
    return std::make_unique<pmdk_outside>(given);
}
std::unique_ptr<map_under_test> make_map_pmdk_actions(const map_options& given) {
    return std::make_unique<pmdk_actions>(given);
}

} // namespace hf::bench
