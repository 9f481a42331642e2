// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What `stats` counts. Volatile, as memcached's are: they start at zero with the process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hf::kv {

enum class count : std::uint8_t {
    cmd_get,
    cmd_set,
    cmd_flush,
    cmd_touch,
    cmd_meta, // me alone, as memcached
    get_hits,
    get_misses,
    get_expired,
    get_flushed,
    delete_hits,
    delete_misses,
    incr_hits,
    incr_misses,
    decr_hits,
    decr_misses,
    cas_hits,
    cas_misses,
    cas_badval,
    touch_hits,
    touch_misses,
    store_too_large,
    store_no_memory,
    total_items,
    evictions,
    reclaimed,
    bytes_read,
    bytes_written,
    idle_kicks,
    stalled_kicks,
    memory_kicks,
    // Copies of the thread's hf::persist counters, for `stats holdfast`.
    sections,
    ordering_points,
    fences,
    flushes,
    log_entries,
    log_bytes,
    pm_bytes,
    last_
};
inline constexpr std::size_t count_kinds = static_cast<std::size_t>(count::last_);

class journal; // journal.hpp

using counts = std::array<std::uint64_t, count_kinds>;

/// One thread's counters: only their owner writes, so counting is a plain add.
class alignas(64) thread_counts {
public:
    void add(count what, std::uint64_t by = 1) noexcept {
        auto& c = values_[static_cast<std::size_t>(what)];
        c.store(c.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    }
    void put(count what, std::uint64_t value) noexcept {
        values_[static_cast<std::size_t>(what)].store(value, std::memory_order_relaxed);
    }
    std::uint64_t get(std::size_t what) const noexcept {
        return values_[what].load(std::memory_order_relaxed);
    }
    std::uint64_t get(count what) const noexcept { return get(static_cast<std::size_t>(what)); }

    /// The journal of the thread's events, for clients that watch; null: none.
    journal* events = nullptr;

private:
    std::array<std::atomic<std::uint64_t>, count_kinds> values_{};
};

/// All threads' counters and their sums.
class counter_board {
public:
    /// A set of counters for a thread; lives as long as the board.
    thread_counts& join();
    counts sums() const;
    /// `stats reset`: sums start from zero again.
    void reset();

private:
    counts raw_sums() const;
    mutable std::mutex lock_;
    std::vector<std::unique_ptr<thread_counts>> threads_;
    counts base_{};
};

} // namespace hf::kv
