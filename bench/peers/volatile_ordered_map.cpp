// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// std::map in DRAM under one reader-writer lock: what persistence costs the ordered structures.
#include "../workload.hpp"
#include "chained.hpp"
#include "peers.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace hf::bench {
namespace {

template <class Key> class volatile_ordered_map final : public map_under_test {
    using value_bytes = std::array<std::byte, 256>;

public:
    bool insert(std::uint64_t key, const void* value) noexcept override {
        const std::unique_lock held{lock_.lock};
        return map_.try_emplace(own(key), *static_cast<const value_bytes*>(value)).second;
    }
    bool find(std::uint64_t key, void* value) noexcept override {
        const std::shared_lock held{lock_.lock};
        const auto found = map_.find(own(key));
        if (found != map_.end()) std::memcpy(value, &found->second, sizeof(value_bytes));
        return found != map_.end();
    }
    bool update(std::uint64_t key, const void* value) noexcept override {
        const std::unique_lock held{lock_.lock};
        const auto found = map_.find(own(key));
        if (found != map_.end()) std::memcpy(&found->second, value, sizeof(value_bytes));
        return found != map_.end();
    }
    std::uint64_t scan(std::uint64_t key, std::uint64_t count, void* value) noexcept override {
        const std::shared_lock held{lock_.lock};
        std::uint64_t seen = 0;
        for (auto at = map_.lower_bound(own(key)); at != map_.end() && seen < count; ++at, ++seen)
            std::memcpy(value, &at->second, sizeof(value_bytes));
        return seen;
    }
    map_facts facts() const override {
        return {false, false, false, "std::map in DRAM, nothing survives"};
    }

private:
    static Key own(std::uint64_t key) noexcept {
        if constexpr (sizeof(Key) == 8) return key;
        else return key_bytes_of<sizeof(Key)>(key);
    }

    lock_line lock_;
    std::map<Key, value_bytes> map_;
};

} // namespace

std::unique_ptr<map_under_test> make_volatile_ordered_map(const map_options& given) {
    if (given.which == structure::bptree)
        return std::make_unique<volatile_ordered_map<std::array<unsigned char, 32>>>();
    return std::make_unique<volatile_ordered_map<std::uint64_t>>();
}

} // namespace hf::bench
