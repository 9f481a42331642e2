// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that take turns: real threads, so each has its own thread-local state; one runs at a
// time. A schedule says where the turn changes; the same schedule gives the same run.
//
// A thread gives up its turn at a switch of the schedule, when it ends, and when it waits: on a
// mutex or by sched_yield (both are replaced in crash programs, see the link options of hf_check),
// or by polling memory that another thread will change. Then the next thread of a ring has the
// turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hf::check {

/// The thread that begins, and the points of the run before which the turn goes to another thread.
struct schedule {
    unsigned first = 0;
    std::vector<std::size_t> switches; // ascending
    std::vector<unsigned> steps{};     // parallel to them: to which one further along the ring; 1
    unsigned ring = 0;                 // number of the order of threads that 0 stands first in
};

/// Threads that live as long as it does.
class turn_takers {
public:
    explicit turn_takers(unsigned threads);
    ~turn_takers();
    turn_takers(const turn_takers&) = delete;
    turn_takers& operator=(const turn_takers&) = delete;

    /// Runs body(thread) on every thread, to the end of all. Calls 'turned' when a thread gets the
    /// turn. Returns the number of points passed.
    ///
    /// Errors:   a run in which every thread waits for another ends the process (deadlock). One
    ///           that is left by a jump (run_guarded) leaves its threads behind, and is the last
    ///           one.
    std::size_t run(const schedule& by, const std::function<void(unsigned)>& body,
                    const std::function<void(unsigned)>& turned);
    /// A point at which the turn may change: the thread that has the turn calls it.
    static void point();
    /// The thread that has the turn can only go on when another has.
    static void wait();
    /// In the last run: where one waited or ended and several could go on, and the ring chose.
    std::size_t choices() const noexcept;
    /// Rings of so many threads.
    static unsigned rings(unsigned threads) noexcept;

    struct shared; // schedule.cpp

private:
    std::unique_ptr<shared> shared_;
};

} // namespace hf::check
