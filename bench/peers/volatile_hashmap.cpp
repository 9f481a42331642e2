// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The map in DRAM, malloc for its nodes: what persistence is compared with.
#include "chained.hpp"
#include "peers.hpp"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

class volatile_hashmap final : public map_under_test {
    struct node {
        node* next;
        std::uint64_t key;
        std::byte value[];
    };
    struct alignas(64) counter {
        std::uint64_t nodes;
    };

public:
    explicit volatile_hashmap(const map_options& given)
        : value_bytes_(given.value_bytes), buckets_each_(buckets_per_instance(given.keys)),
          buckets_(std::make_unique<node*[]>(buckets_each_ * lock_count)) {}
    ~volatile_hashmap() override {
        for (std::uint64_t i = 0; i < buckets_each_ * lock_count; ++i)
            while (node* first = buckets_[i]) {
                buckets_[i] = first->next;
                std::free(first);
            }
    }
    bool insert(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::unique_lock held{locks_[at.instance]};
        if (search(at, key) != nullptr) return false;
        auto* fresh = static_cast<node*>(std::malloc(sizeof(node) + value_bytes_));
        if (fresh == nullptr) return false;
        fresh->next = buckets_[at.bucket];
        fresh->key = key;
        std::memcpy(fresh->value, value, value_bytes_);
        buckets_[at.bucket] = fresh;
        ++counts_[at.instance].nodes;
        return true;
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::shared_lock held{locks_[at.instance]};
        const node* found = search(at, key);
        if (found != nullptr) std::memcpy(value, found->value, value_bytes_);
        return found != nullptr;
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        const chained_place at = place_of(key, buckets_each_);
        const std::unique_lock held{locks_[at.instance]};
        node* found = search(at, key);
        if (found != nullptr) std::memcpy(found->value, value, value_bytes_);
        return found != nullptr;
    }
    std::uint64_t scan(std::uint64_t, std::uint64_t, void*) noexcept override { return 0; }
    map_facts facts() const override {
        return {false, false, false, "DRAM, nothing survives; malloc is not prefaulted"};
    }

private:
    node* search(const chained_place& at, std::uint64_t key) const noexcept {
        node* each = buckets_[at.bucket];
        while (each != nullptr && each->key != key) each = each->next;
        return each;
    }

    std::size_t value_bytes_;
    std::uint64_t buckets_each_;
    std::unique_ptr<node*[]> buckets_;
    std::array<counter, lock_count> counts_{};
    instance_locks locks_;
};

} // namespace

std::unique_ptr<map_under_test> make_volatile_hashmap(const map_options& given) {
    return std::make_unique<volatile_hashmap>(given);
}

} // namespace hf::bench
