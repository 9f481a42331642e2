// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <section/commit_marks.hpp>

namespace hf {

void commit_marks::settle_others(bool deferring) {
    if (!counted_) {
        counted_ = true;
        pool_.lanes.section_threads.fetch_add(1);
    }
    // This lane's own mark is superseded by the begin record about to be written. Another's has
    // been due since before its owner released its locks: it is made durable before anything of
    // this section can be. With both pending, recovery would take them for independent (2).
    const std::uint32_t one = pool_.lanes.leaves_out.load(std::memory_order_acquire);
    if (one != lane_set::no_lane && one != lane_) [[unlikely]]
        pool_.lanes.settle(one);
    if (deferring) pool_.lanes.settle_deferring(lane_);
}

bool commit_marks::settle() {
    if (!due_) return false;
    pool_.lanes.store_due_mark(lane_);
    medium_.fence();
    forget();
    HF_ASSERT_SLOW(freed_.empty() && freed_before_.empty());
    return true;
}

void commit_marks::store(std::uint64_t epoch) {
    store_mark(medium_, &header_, epoch);
    // Upholds (1); and (2) by not using it.
    medium_.fence();
    fenced();
    HF_ASSERT_SLOW(!due_);
    if (state_.mark_due.load(std::memory_order_relaxed) != 0)
        state_.mark_due.store(0, std::memory_order_relaxed);
    release_freed();
    leave_none_out();
}

bool commit_marks::may_leave_out() noexcept {
    if (pool_.lanes.section_threads.load(std::memory_order_acquire) != 1) return false;
    std::uint32_t one = pool_.lanes.leaves_out.load(std::memory_order_relaxed);
    return one == lane_ ||
           (one == lane_set::no_lane && pool_.lanes.leaves_out.compare_exchange_strong(one, lane_));
}

void commit_marks::leave_none_out() noexcept {
    HF_ASSERT_SLOW(!due_);
    if (pool_.lanes.leaves_out.load(std::memory_order_relaxed) == lane_)
        pool_.lanes.leaves_out.store(lane_set::no_lane, std::memory_order_release);
}

void commit_marks::leave() {
    settle();
    leave_none_out();
    if (counted_) pool_.lanes.section_threads.fetch_sub(1);
    counted_ = false;
}

void commit_marks::release(std::vector<block>& blocks) {
    for (block b : blocks) pool_.blocks.release(cache_, b);
    blocks.clear();
}

bool commit_marks::valid(bool shared) const noexcept {
    // A mark that waits is this lane's, of the last section of it that has committed (2).
    if (!shared && due_ && state_.mark_due.load() == 0) return false;
    if (due_ && (shared || medium_.keeps_order())) return false;
    return (freed_.empty() || due_) && state_.valid(); // (1)
}

} // namespace hf
