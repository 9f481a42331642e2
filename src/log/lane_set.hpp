// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lanes of an open pool, as threads share them: which thread has which, whose marks are due.
#pragma once

#include <base/line.hpp>
#include <log/flush_set.hpp>
#include <log/lane.hpp>
#include <log/left_stores.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace hf {

/// Volatile side of a lane. The thread that owns the lane writes it; others look at mark_due, and
/// store that mark.
struct alignas(line_bytes) lane_state {
    std::uint64_t epoch = 0; // of the lane's newest section
    bool taken = false;      // guarded by lane_set::lock
    // Epoch of a committed section whose mark is not stored: it waits for the lane's next begin
    // record, or for another thread to store it. 0: none.
    alignas(line_bytes) std::atomic<std::uint64_t> mark_due{0};
    std::atomic<std::uint64_t> settled{0}; // the mark that was last flushed for its owner
    std::atomic<std::uint64_t> durable{0}; // and the one that was waited for
    // What the two sections have left whose logs may be read, by the epoch's parity, as the halves.
    left_stores left[2];
    // The older section may need its sum as well (commit_marks.hpp, 3). Once set it stays.
    std::atomic<bool> older_sums{false};
    // Lines that sections of the lane have stored to lazily (hf::lazy). Null: none so far.
    std::unique_ptr<flush_set> lazy_lines;

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

    /// Whether the lane's mark is due, and not known to be durable.
    bool is_due(std::uint32_t lane) const noexcept {
        const lane_state& state = states_[lane];
        return state.mark_due.load(std::memory_order_acquire) >
               state.durable.load(std::memory_order_acquire);
    }

    /// Stores and flushes the lane's mark if it is still due; durable with the caller's next fence.
    /// Any thread may call it: the mark only ever grows. An ordering point where the section's
    /// stores are not fenced yet.
    void store_due_mark(std::uint32_t lane) noexcept;
    void store_due_marks() noexcept {
        for_each_due([this](std::uint32_t l) { store_due_mark(l); });
    }
    /// The same, durable when it returns.
    void settle(std::uint32_t lane) noexcept;
    void settle_all() noexcept {
        for_each_due([this](std::uint32_t l) { settle(l); });
    }
    /// The same for every other lane whose log may stand for stores.
    void settle_deferring(std::uint32_t but) noexcept {
        for (std::uint32_t l = 0; l < deferring(); ++l)
            if (l != but) settle(l);
    }
    /// The same for each of those lanes whose replay would change or read something from 'first' to
    /// 'end'.
    void settle_under(std::uintptr_t first, std::uintptr_t end, std::uint32_t but) noexcept {
        for (std::uint32_t l = 0; l < deferring(); ++l)
            if (l != but && is_due(l) &&
                (states_[l].left[0].touches(first, end) || states_[l].left[1].touches(first, end)))
                settle(l);
    }
    /// The same before that memory changes outside of sections. A section that runs again may read
    /// anything, so its mark is settled wherever the memory lies.
    void settle_before_store(std::uintptr_t first, std::uintptr_t end) noexcept {
        if (const std::uint32_t its = leaves_out.load(std::memory_order_acquire); its != no_lane)
            settle(its);
        settle_under(first, end, no_lane);
    }
    /// The same for each whose log has a sum of the memory around a lock in the pool, which is
    /// about to be taken; or to be let go, having been taken before the sum was.
    void settle_sums_of(const void* lock, bool taken) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(lock);
        for_each_due([&](std::uint32_t l) {
            if (!is_due(l)) return;
            const std::uint64_t due = states_[l].mark_due.load();
            const auto has_sum = [&](const left_stores& left) {
                return taken ? left.owns(at, at + 1) : left.was_filled(at);
            };
            if (has_sum(states_[l].left[due % 2]) ||
                (states_[l].older_sums.load(std::memory_order_acquire) &&
                 has_sum(states_[l].left[(due + 1) % 2])))
                settle(l);
        });
    }
    /// Starts the write-back of what sections have stored lazily, while none runs; durable with the
    /// caller's next fence.
    void flush_lazy(hf::medium pm) {
        for (lane_state& l : states_)
            if (l.lazy_lines != nullptr) l.lazy_lines->flush_all(pm);
    }
    /// Lanes below this one have had logs that stand for stores. Before the first such mark is due.
    void note_deferring(std::uint32_t lane) noexcept;
    std::uint32_t deferring() const noexcept { return deferring_.load(std::memory_order_acquire); }
    /// A lane whose thread is, or has ended, inside a section, as when it calls exit() there; or
    /// none. A section that logs words counts once it has logged one. Requires: due marks are
    /// stored.
    std::uint32_t in_section() noexcept;

    /// Whether marks are due only of the lane in 'leaves_out', and of those whose logs stand for
    /// stores. While no section runs.
    bool valid() const noexcept;

    std::mutex lock;
    // Held from the beginning to the end of a section on the last lane, which all threads share
    // that come when no other is free. Locks are taken before a section begins: no thread waits
    // here for one that waits for it.
    std::mutex last_lane_turns;
    std::atomic<unsigned> section_threads{0}; // threads that have begun sections
    // The one lane that may have a mark due though its section would run again: its owner was alone
    // when it last committed. Looked at by every section, changed when threads come and go.
    std::atomic<std::uint32_t> leaves_out{no_lane};

private:
    /// Calls 'visit' for each lane that may have a mark due (valid()).
    template <class Visit> void for_each_due(Visit&& visit) {
        const std::uint32_t its = leaves_out.load(std::memory_order_acquire);
        if (its != no_lane) visit(its);
        for (std::uint32_t l = 0; l < deferring(); ++l) visit(l);
    }

    pool_file& file_;
    std::vector<lane_state> states_;
    std::atomic<std::uint32_t> deferring_{0};
};

} // namespace hf
