// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that take turns: real threads, so that what they keep per thread is theirs, of which one
// runs at a time. Where the turn changes is a schedule; the same schedule gives the same run.
//
// A thread gives its turn up where the schedule says, where it ends, and where it waits: on a mutex
// or by sched_yield (both are replaced in crash programs, see the link options of hf_check).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hf::check {

/// Who begins, and before which of the run's points the turn goes to the next thread.
struct schedule {
    unsigned first = 0;
    std::vector<std::size_t> switches; // ascending
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
    /// Errors:   a run in which every thread waits for another ends the process (deadlock).
    std::size_t run(const schedule& by, const std::function<void(unsigned)>& body,
                    const std::function<void(unsigned)>& turned);
    /// A point at which the turn may change: the thread that has the turn calls it.
    static void point();

    struct shared; // schedule.cpp

private:
    std::unique_ptr<shared> shared_;
};

} // namespace hf::check
