// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lanes of an open pool, as threads share them: which thread has which, whose marks are due.
#pragma once

#include <base/line.hpp>
#include <log/lane.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace hf {

/// Volatile side of a lane. The thread that owns the lane writes it; others look at mark_due, and
/// store that mark.
struct alignas(line_bytes) lane_state {
    static constexpr std::uint32_t unfenced_max = 44;

    std::uint64_t epoch = 0; // of the lane's newest section
    // Epoch of a committed section whose mark is not stored: it waits for the lane's next begin
    // record, or for another thread to store it. 0: none.
    std::atomic<std::uint64_t> mark_due{0};
    std::atomic<std::uint64_t> settled{0}; // the mark that was last flushed for its owner
    bool taken = false;                    // guarded by lane_set::lock

    // Of the section whose mark is due, where its log stands for its stores until the next fence
    // (section.hpp, 9). Written when they are durable, while their mark may still be due to other threads.
    std::atomic<std::uint32_t> unfenced{0}; // lines that its commit has stored to and flushed
    std::atomic<std::uintptr_t> summed_first{0},
        summed_end{0}; // around memory whose sums it logged
    std::array<std::atomic<std::uintptr_t>, unfenced_max> unfenced_lines{};

    /// Whether no mark is newer than the lane's newest section. For the lane's owner.
    bool valid() const noexcept { return mark_due.load() <= epoch && settled.load() <= epoch; }
};

static_assert(sizeof(lane_state) % line_bytes == 0, "threads write no line of each other");

class lane_set {
public:
    explicit lane_set(pool_file& of) : file_(of), states_(of.shape().lane_count) {
        HF_ASSERT(size() >= 2); // one for a thread alone, and the last, which threads share
    }

    static constexpr std::uint32_t no_lane = ~std::uint32_t{0};

    std::size_t size() const noexcept { return states_.size(); }
    lane_state& operator[](std::uint32_t lane) noexcept {
        HF_ASSERT_SLOW(lane < size());
        return states_[lane];
    }
    const lane_state& operator[](std::uint32_t lane) const noexcept {
        HF_ASSERT_SLOW(lane < size());
        return states_[lane];
    }

    /// Stores and flushes the lane's mark if it is still due; durable with the caller's next fence.
    /// Any thread may call it: the mark only ever grows. An ordering point where the section's stores
    /// are not fenced yet.
    void store_due_mark(std::uint32_t lane) noexcept;
    void store_due_marks() noexcept {
        for (std::uint32_t l = 0; l < size(); ++l) store_due_mark(l);
    }
    /// The same, for a lock in the pool: durable when it returns. Only where the log of the section whose
    /// mark is due has a sum of the memory around 'lock', which is about to change.
    void settle_sums_of(const void* lock) noexcept {
        const std::uint32_t its = lazy.load(std::memory_order_acquire);
        if (its != no_lane && states_[its].mark_due.load(std::memory_order_acquire) != 0)
            settle_sums_of(lock, its);
    }
    /// A lane whose thread is, or has ended, inside a section, as when it calls exit() there; or
    /// none. Requires: due marks are stored.
    std::uint32_t in_section() noexcept;

    /// Whether at most one lane, the one in 'lazy', has a mark due. While no section runs.
    bool valid() const noexcept;

    std::mutex lock;
    // Held from the beginning to the end of a section on the last lane, which all threads share
    // that come when no other is free. Locks are taken before a section begins: no thread waits here
    // for one that waits for it.
    std::mutex last_lane_turns;
    std::atomic<unsigned> section_threads{0}; // threads that have begun sections
    // The one lane that may have a mark due: its owner was alone when it last committed. Looked at
    // by every section, changed when threads come and go.
    std::atomic<std::uint32_t> lazy{no_lane};

private:
    void flush_unfenced(std::uint32_t lane) noexcept;
    void settle_sums_of(const void* lock, std::uint32_t lane) noexcept;

    pool_file& file_;
    std::vector<lane_state> states_;
};

} // namespace hf
