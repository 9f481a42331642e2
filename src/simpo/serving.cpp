// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <simpo/serving.hpp>

#include <sched.h>

namespace hf::simpo {

position serving::serve(const log_array& log, void* object, position from, position below) {
    std::array<std::uint8_t, queues_max> place{}; // of a hint's queue, and 1
    std::uint64_t used = 0;
    position p = from;
    for (std::size_t count = 0; p < below && count < calls_max; ++count) {
        const auto [hint, next] = log.glance(p);
        if (hint == 0) break; // upholds (2): the instant one that ends a group has none either
        std::uint8_t& its = place[hint % queues_max];
        if (its == 0) {
            queues_[used] = {p, p};
            its = static_cast<std::uint8_t>(++used);
        } else {
            queue& mine = queues_[its - 1];
            log.link(mine.last, p);
            mine.last = p;
        }
        p = next;
    }
    if (used == 0) return p;
    log_ = &log;
    object_ = object;
    unfinished_.store(static_cast<std::uint32_t>(used), std::memory_order_relaxed);
    const std::uint64_t number = (round_.load(std::memory_order_relaxed) >> 16) + 1;
    round_.store(number << 16 | used << 8, std::memory_order_release);
    while (help()) {}
    while (unfinished_.load(std::memory_order_acquire) != 0) ::sched_yield(); // upholds (3)
    return p;
}

bool serving::help() noexcept {
    std::uint64_t round = round_.load(std::memory_order_acquire);
    do {
        if ((round & 0xff) == (round >> 8 & 0xff)) return false;
    } while (!round_.compare_exchange_weak(round, round + 1, std::memory_order_acq_rel));
    record room;
    std::optional<position> at = queues_[round & 0xff].first;
    for (; at; at = log_->linked(*at)) { // upholds (1)
        const auto [r, f, next] = log_->call_at(*at, room);
        f->run(object_, r.arguments);
    }
    unfinished_.fetch_sub(1, std::memory_order_release);
    return true;
}

} // namespace hf::simpo
