// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of events on an out-of-order core: each resource is the time at which it is free next.
//
// (1) Instructions issue at a steady rate, but none before the one that is a reorder buffer older
//     has retired; they retire in order.
// (2) A load waits for its address and for its line. Only its users wait for it, and, through (1),
//     the far future.
// (3) A store has retired when it enters the store queue. It misses there without delaying the
//     core, beside other misses; stores become visible in order.
#pragma once

#include <sim/parameters.hpp>

#include <algorithm>
#include <vector>

namespace hf::sim {

class core_clock {
public:
    explicit core_clock(const core_parameters& how);

    ticks now() const { return now_; }
    void compute(std::uint64_t instructions) { now_ += instructions * instruction_; }

    /// When a load may start whose address is known at `ready`.
    ticks start_load(ticks ready) {
        issue();
        return std::max(now_, ready);
    }
    /// It has its value at `done`.
    void end_load(ticks done) { retire(done); }

    /// When a store may ask for its line. One that misses takes one of the places for misses.
    ticks start_store(bool misses) {
        issue();
        retire(now_);
        return misses ? std::max(retired_, misses_[miss_]) : retired_;
    }
    /// It has its line, and everything else that it waits for, at `done`.
    void end_store(ticks done, bool missed);

    /// When all stores so far are visible, and all instructions have retired.
    ticks settled() const { return std::max({now_, retired_, visible_}); }
    void wait_until(ticks then) { now_ = std::max(now_, then); }

private:
    void issue() {
        now_ = std::max(now_ + access_, window_[oldest_]); // upholds (1)
    }
    void retire(ticks done) {
        retired_ = std::max(retired_, done);
        window_[oldest_] = retired_;
        if (++oldest_ == window_.size()) oldest_ = 0;
    }

    ticks instruction_, access_;
    ticks now_ = 0, retired_ = 0, visible_ = 0;
    std::vector<ticks>
        window_; // when the accesses of a reorder buffer retired; oldest_ is reused next
    std::vector<ticks> stores_; // when those of the store queue became visible
    std::vector<ticks> misses_;
    std::size_t oldest_ = 0, store_ = 0, miss_ = 0;
};

} // namespace hf::sim
