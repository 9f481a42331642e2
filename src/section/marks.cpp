// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Commit marks: when a section's is stored, and whose may be left out (section.hpp, 4).
#include <base/assert.hpp>
#include <section/section.hpp>

namespace hf {

/// The section's mark is durable when it returns, and nothing of it waits for that any more.
void section::settle_own_mark() {
    store_mark(medium_, header_, epoch_);
    if (!medium_.keeps_order()) fence(); // section.hpp (3); and (4) by not using it
    forget_due();
    release_freed();
    no_longer_lazy();
}

/// Makes this lane the one whose marks may be left out, unless there are others, or another is.
bool section::may_be_lazy() noexcept {
    HF_ASSERT_SLOW(turns_ == nullptr); // the next turn writes over the log
    if (pool_->lanes.section_threads.load(std::memory_order_acquire) != 1) return false;
    std::uint32_t lazy = pool_->lanes.lazy.load(std::memory_order_relaxed);
    return lazy == lane_ ||
           (lazy == lane_set::no_lane && pool_->lanes.lazy.compare_exchange_strong(lazy, lane_));
}

/// The mark of a later section is durable.
void section::forget_due() noexcept {
    HF_ASSERT_SLOW(!mark_due_);
    if (state_->mark_due.load(std::memory_order_relaxed) != 0)
        state_->mark_due.store(0, std::memory_order_relaxed);
}

/// Requires: no mark of this lane is due.
void section::no_longer_lazy() noexcept {
    HF_ASSERT_SLOW(!mark_due_);
    if (pool_->lanes.lazy.load(std::memory_order_relaxed) == lane_)
        pool_->lanes.lazy.store(lane_set::no_lane, std::memory_order_release);
}

void section::settle_mark() {
    if (!mark_due_) return;
    pool_->lanes.store_due_mark(lane_);
    medium_.fence();
    unfenced_ = false;
    forget_mark();
    HF_ASSERT_SLOW(!mark_due_);
    HF_ASSERT_SLOW(freed_.empty() && freed_before_.empty());
}

void section::leave() {
    HF_ASSERT_SLOW(turns_ != nullptr || idle());
    settle_mark();
    no_longer_lazy();
    if (counted_) pool_->lanes.section_threads.fetch_sub(1);
    counted_ = false;
}

} // namespace hf
