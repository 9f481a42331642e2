// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Locks that live in the pool beside the data they guard. No crash leaves one held: its word
// carries the number of the open in which it was taken, and counts as free in any other.
// A zero-filled lock is free. Locks are never logged or flushed.
//
// Locking is conservative, strong and strict two-phase (Clobber §2.2). Take every lock before the
// section begins, in one order everywhere (std::scoped_lock does it), and release it when the
// section has returned. Taking or releasing a lock inside a section ends the process with a
// message.
#pragma once

#include <atomic>
#include <cstdint>

namespace hf {

/// Reader-writer lock of one word, 8 bytes; writers are preferred once they wait. Satisfies
/// SharedMutex.
///
/// Requires: zero-filled memory of an open pool.
/// Cost:     one compare-and-exchange where nobody else has it; else it spins briefly, then yields.
/// Ordering: 0 points.
/// Crash:    free in the next open.
/// Threads:  any of one process.
/// Source:   Clobber §2.2, for when to take it.
class shared_mutex {
public:
    void lock() noexcept;
    bool try_lock() noexcept;
    void unlock() noexcept;
    void lock_shared() noexcept;
    bool try_lock_shared() noexcept;
    void unlock_shared() noexcept;

private:
    // [generation:32][writer waits:1][writer:1][readers:30]
    std::atomic<std::uint64_t> word_;
};

using mutex = shared_mutex;

} // namespace hf
