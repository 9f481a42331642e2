// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "counters.hpp"

namespace hf::kv {

thread_counts& counter_board::join() {
    const std::lock_guard held(lock_);
    return *threads_.emplace_back(std::make_unique<thread_counts>());
}

counts counter_board::raw_sums() const {
    counts total{};
    for (const auto& thread : threads_)
        for (std::size_t i = 0; i < count_kinds; ++i) total[i] += thread->get(i);
    return total;
}

counts counter_board::sums() const {
    const std::lock_guard held(lock_);
    counts total = raw_sums();
    for (std::size_t i = 0; i < count_kinds; ++i) total[i] -= base_[i];
    return total;
}

void counter_board::reset() {
    const std::lock_guard held(lock_);
    base_ = raw_sums();
}

} // namespace hf::kv
