// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Our skip list on libpmemobj's transactions: 32 levels, one in four nodes of a level in the next,
// one lock, the value inside the node. A transaction snapshots the links that it overwrites, 16
// bytes each, and the count; the new node is allocated in it and needs none.
#include "chained.hpp"
#include "peers.hpp"
#include "pmdk_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

using namespace pmdk;

constexpr unsigned level_count = 32;

struct node {
    std::uint64_t key;
    std::uint64_t height;
    PMEMoid links[]; // then the value

    void* value() noexcept { return links + height; }
};
struct root_object {
    std::uint64_t count;
    PMEMoid head[level_count];
};

class pmdk_skiplist final : public map_under_test {
public:
    explicit pmdk_skiplist(const map_options& given)
        : value_bytes_(given.value_bytes), file_(given), root_(file_.root<root_object>()) {}

    bool insert(std::uint64_t key, const void* value) noexcept override {
        const std::unique_lock held{lock_.lock};
        const unsigned height = height_of(key);
        std::array<PMEMoid*, level_count> places;
        node* next = find_places(key, std::max(height, levels_in_use()), places);
        if (next != nullptr && next->key == key) return false;
        return in_transaction(file_.pool(), [&] {
            const std::size_t bytes = sizeof(node) + height * sizeof(PMEMoid) + value_bytes_;
            const PMEMoid fresh = pmemobj_tx_alloc(bytes, 2);
            auto* made = direct<node>(fresh);
            made->key = key;
            made->height = height;
            std::memcpy(made->value(), value, value_bytes_);
            for (unsigned level = 0; level < height; ++level) {
                made->links[level] = *places[level];
                snapshot(places[level]);
                *places[level] = fresh;
            }
            snapshot(&root_->count);
            ++root_->count;
        });
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const std::shared_lock held{lock_.lock};
        node* found = first_from(key);
        if (found == nullptr || found->key != key) return false;
        std::memcpy(value, found->value(), value_bytes_);
        return true;
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        const std::unique_lock held{lock_.lock};
        node* found = first_from(key);
        if (found == nullptr || found->key != key) return false;
        return in_transaction(file_.pool(), [&] {
            snapshot(static_cast<std::byte*>(found->value()), value_bytes_);
            std::memcpy(found->value(), value, value_bytes_);
        });
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        const std::shared_lock held{lock_.lock};
        std::uint64_t seen = 0;
        for (node* each = first_from(key); each != nullptr && seen < count;
             each = direct<node>(each->links[0]), ++seen)
            std::memcpy(value, each->value(), value_bytes_);
        return seen;
    }
    map_facts facts() const override { return file_.facts(); }
    std::optional<reopened> state() const override { return file_.state(); }

private:
    static unsigned height_of(std::uint64_t key) noexcept {
        const std::uint64_t hash = XXH3_64bits(&key, sizeof key);
        return 1 + std::min(static_cast<unsigned>(std::countr_zero(hash)) / 2, level_count - 1);
    }
    unsigned levels_in_use() const noexcept {
        return std::min(1 + static_cast<unsigned>(std::bit_width(root_->count)) / 2, level_count);
    }
    node* first_from(std::uint64_t key) noexcept {
        std::array<PMEMoid*, level_count> places;
        return find_places(key, levels_in_use(), places);
    }
    // On each of the lowest 'levels' levels, the link to the first node that is not below 'key';
    // returns that of level 0.
    node* find_places(std::uint64_t key, unsigned levels,
                      std::array<PMEMoid*, level_count>& places) noexcept {
        PMEMoid* links = root_->head;
        std::uint64_t beyond = 0; // not below the key: needs no second look on the next level
        node* next = nullptr;
        for (unsigned level = levels; level-- > 0;) {
            while (links[level].off != beyond) {
                next = direct<node>(links[level]);
                if (next == nullptr || next->key >= key) break;
                links = next->links;
            }
            beyond = links[level].off;
            places[level] = &links[level];
        }
        return direct<node>(*places[0]);
    }

    std::size_t value_bytes_;
    pool_file file_;
    root_object* root_;
    lock_line lock_;
};

} // namespace

std::unique_ptr<map_under_test> make_pmdk_skiplist(const map_options& given) {
    return std::make_unique<pmdk_skiplist>(given);
}

} // namespace hf::bench
