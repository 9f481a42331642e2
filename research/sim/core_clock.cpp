// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <sim/core_clock.hpp>

namespace hf::sim {

core_clock::core_clock(const core_parameters& how)
    : instruction_(ticks_per_cycle / how.instructions_per_cycle),
      access_(how.instructions_per_access * instruction_),
      window_(how.reorder_buffer / how.instructions_per_access), stores_(how.store_queue),
      misses_(how.store_misses) {
    HF_ASSERT(ticks_per_cycle % how.instructions_per_cycle == 0);
    HF_ASSERT(!window_.empty() && !stores_.empty() && !misses_.empty());
}

void core_clock::end_store(ticks done, bool missed) {
    if (missed) {
        misses_[miss_] = done;
        if (++miss_ == misses_.size()) miss_ = 0;
    }
    visible_ = std::max(visible_, done); // upholds (3)
    now_ = std::max(now_, stores_[store_]);
    stores_[store_] = visible_;
    if (++store_ == stores_.size()) store_ = 0;
}

} // namespace hf::sim
