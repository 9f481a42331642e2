// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the chained peers share: the hash, the split of it into instance and bucket, the locks.
#pragma once

#include "../map_under_test.hpp"

#include <holdfast/lock.hpp>

#include <array>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace hf::bench {

struct alignas(64) lock_line {
    hf::shared_mutex lock;
};

/// 256 locks in volatile memory, each on a line of its own.
class instance_locks {
public:
    hf::shared_mutex& operator[](std::uint64_t instance) noexcept { return lines_[instance].lock; }

private:
    std::array<lock_line, lock_count> lines_{};
};

struct chained_place {
    std::uint64_t instance;
    std::uint64_t bucket; // of all instances' buckets
};

inline chained_place place_of(std::uint64_t key, std::uint64_t buckets_each) noexcept {
    const std::uint64_t hash = XXH3_64bits(&key, sizeof key);
    const std::uint64_t instance = hash >> 56;
    return {instance, instance * buckets_each + (hash & (buckets_each - 1))};
}

} // namespace hf::bench
