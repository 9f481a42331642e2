// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commit marks of a lane: when a section's is stored, when it may be left out, and what waits for
// it. A section has happened when its epoch is in its lane's header.
//
// (1) A freed block is handed out again only when the section's commit mark is durable.
// (2) The mark may be left out while no other thread has begun sections. The engine must be able to
//     recover a section that has happened: it runs again, with the same result. The next begin
//     record stands for the mark. A section of another thread makes such a mark durable before its
//     own begin record can be. So two sections that are pending together have seen nothing of each
//     other. A section has all its locks when it begins and keeps them until it has committed, so
//     of two that take the same lock the later began when the other's mark was durable.
// (3) A section that leaves its mark out may leave its stores to the lane's next fence, too: its
//     log says what they are, or whether they are there. Until that log is written over recovery
//     may replay the section, or roll it back, so what it freed is handed out one section later.
//     A section leaves its stores only to the next log of its own engine.
// (4) No two lanes' logs may be replayed that change the same. A section that is about to change
//     what a log of another lane stands for (left_stores.hpp) makes that one's mark durable first,
//     before it has a log itself. Lanes know each other's lines, blocks taken and blocks freed. In
//     the allocator's words each changes bits of its own. A section that stores as it goes settles
//     all such marks when it begins. Settling a mark fences the stores first.
// (5) A log may have the sum of the memory around a lock. The lock changes when the section's mark
//     is settled, and not before: else what was committed would not be believed.
// (6) A lane's epochs only grow, over every recovery and every open: a begin record that a failure
//     tore off its log is never written again, or what is left of that log would follow from it.
#pragma once

#include <base/assert.hpp>
#include <log/lane.hpp>
#include <log/lane_set.hpp>
#include <open/pool_impl.hpp>

#include <cstdint>
#include <vector>

namespace hf {

class commit_marks {
public:
    commit_marks(hf::pool::impl& pool, std::uint32_t lane, thread_cache& cache) noexcept
        : pool_(pool), state_(pool.lanes[lane]), header_(*lane_at(*pool.file, lane)), cache_(cache),
          medium_(pool.file->medium()), lane_(lane) {}

    std::uint32_t lane() const noexcept { return lane_; }
    lane_state& state() const noexcept { return state_; }
    lane_header& header() const noexcept { return header_; }

    /// Whether the lane's last section has left its mark out, and nothing that is durable stands
    /// for it.
    bool due() const noexcept { return due_; }
    /// Whether it has left its stores, too (3).
    bool stores_left() const noexcept { return due_ && stores_left_; }
    /// What others know of the lane's section of that epoch.
    left_stores& left(std::uint64_t epoch) const noexcept { return state_.left[epoch % 2]; }

    /// A section of this thread begins: makes the marks of other threads durable that it may depend
    /// on. 'deferring': those of logs that stand for stores as well (4).
    void settle_others(bool deferring);
    /// Makes a mark that was left out durable. False: none was.
    bool settle();
    /// A section's mark is durable when it returns, and nothing waits for it any more.
    void store(std::uint64_t epoch);
    /// The same in an ordered medium, where no mark is ever left out.
    void store_in_order(std::uint64_t epoch) {
        store_mark(ordered_medium(medium_), &header_, epoch);
        release_freed(); // upholds (1)
    }
    /// Makes this lane the one whose marks may be left out, unless there are others, or another is
    /// (2).
    bool may_leave_out() noexcept;
    /// Leaves the mark out. 'stores_left': and so have been the section's stores.
    void leave_out(std::uint64_t epoch, bool stores_left) noexcept {
        due_ = true;
        stores_left_ = stores_left;
        state_.mark_due.store(epoch, std::memory_order_release);
    }
    /// Stores a mark that is left out, but starts no write-back: a process that alone was killed
    /// has finished the section. Stores, and no locked operation: the next section's first loads
    /// need not wait for the fence before.
    void store_unflushed(std::uint64_t epoch) noexcept {
        std::atomic_ref(header_.committed).store(epoch, std::memory_order_release);
        trace::announce(trace::store, &header_.committed, word_bytes);
    }
    /// A fence was passed behind a begin record of this lane, which stands for the mark before it.
    void fenced() {
        if (!due_) return;
        if (stores_left_) return log_fenced();
        forget();
    }
    /// A fence was passed behind a log of this lane that may be replayed, or rolled back: so may
    /// the one before it (3). For other threads that one's mark stays due until this section's own
    /// takes its place: they may change what it stored, while this section, which may not have
    /// happened yet, is all that stands for it.
    void log_fenced() {
        release(freed_before_);
        if (!due_) return;
        due_ = false;
        freed_before_.swap(freed_);
    }
    /// Makes the marks of logs of other lanes durable that stand for something in these bytes (4):
    /// an ordering point or two, where there is one.
    void settle_under(std::uintptr_t first, std::uint64_t bytes) {
        pool_.lanes.settle_under(first, first + bytes, lane_);
    }
    /// From here on this lane may have logs that do.
    void note_deferring() noexcept { pool_.lanes.note_deferring(lane_); }
    /// Requires: no mark of this lane is due.
    void leave_none_out() noexcept;
    /// The thread uses the pool no more.
    void leave();

    /// The blocks that wait for the mark to come (1).
    std::vector<block>& freed() noexcept { return freed_; }
    bool holds_blocks() const noexcept { return !freed_.empty() || !freed_before_.empty(); }
    void release(std::vector<block>& blocks);
    void release_freed() {
        HF_ASSERT_SLOW(!due_); // upholds (1)
        if (!holds_blocks()) return;
        release(freed_before_);
        release(freed_);
    }

    /// 'shared': threads take turns on the lane.
    bool valid(bool shared) const noexcept;

private:
    /// Durable is the mark itself, or the begin record that stands for it.
    void forget() {
        due_ = false;
        state_.mark_due.store(0, std::memory_order_relaxed);
        release_freed();
    }

    hf::pool::impl& pool_;
    lane_state& state_;
    lane_header& header_;
    thread_cache& cache_;
    hf::medium medium_;
    std::uint32_t lane_;
    bool counted_ = false;            // in lane_set::section_threads
    bool due_ = false;                // (2)
    bool stores_left_ = false;        // (3)
    std::vector<block> freed_;        // of the section whose mark is not yet durable
    std::vector<block> freed_before_; // of the one before it, whose log may yet be read (3)
};

} // namespace hf
