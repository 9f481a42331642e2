// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that several threads make at once, because their hints say that they have nothing in
// common.  SIMPO §3.1.2, concurrency boosting
//
// (1) Calls of one hint are made by one thread, in the order in which they were logged.
// (2) Calls of several hints are made side by side between two calls without a hint. Such a call is
//     the paper's ALL, a barrier.
// (3) The thread that holds the object's lock returns from serve() when all of these calls have
//     been made. Only then do they pass 'done' (log_array.hpp, 3), and only then is a checkpoint
//     written.
//
// The other servers are threads that wait for the lock; no thread is made for it. The log has no
// hints, and recovery makes all calls one at a time: if the result differs, the hints were wrong.
#pragma once

#include <simpo/log_array.hpp>

#include <array>
#include <atomic>
#include <cstdint>

namespace hf::simpo {

class serving {
public:
    static constexpr std::size_t queues_max = 16; // hints beyond share them
    static constexpr std::size_t calls_max =
        512; // of one serve(): a thread that begins to wait is noticed in time

    /// Whether a thread waits that can help.
    bool awaited() const noexcept { return waiting_.load(std::memory_order_relaxed) != 0; }
    /// A thread begins to wait, and waits no more.
    void begin_waiting() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
    void end_waiting() noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }

    /// Makes the hinted calls from `from` on, below `below`, up to the first that has no hint;
    /// returns where that begins. Requires: the object's lock; they are committed.
    position serve(const log_array& log, void* object, position from, position below);
    /// Makes the calls of a hint that no thread has taken yet; false if there is no such hint.
    /// Called by threads that wait for the lock.
    bool help() noexcept;

private:
    struct queue {
        position first, last; // linked through the log
    };
    std::array<queue, queues_max> queues_{}; // written while no thread can take one
    const log_array* log_ = nullptr;
    void* object_ = nullptr;
    // The number of this round, how many queues it has, how many are taken: 48 bits, 8 and 8.
    alignas(line_bytes) std::atomic<std::uint64_t> round_{0};
    std::atomic<std::uint32_t> unfinished_{0};
    alignas(line_bytes) std::atomic<std::uint32_t> waiting_{0};
};

} // namespace hf::simpo
