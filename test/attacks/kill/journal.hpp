// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What survives a killed workload outside its pool: which operations were acknowledged. It lies in
// anonymous shared memory that parent and children map; a child's stores outlive it as they do in a
// pool in process mode.
//
// (1) Operation n of a thread is a function of (seed, thread, n), so numbers suffice.
// (2) A thread writes 'pending' before 'started', performs the operation, writes its effect to
//     'last' and only then 'acked'. So acked <= started <= acked + 1. When they differ, one
//     operation is either whole or absent, and 'pending' contains the value of 'last' before it.
#pragma once

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace kill_test {

inline constexpr unsigned threads_max = 8;
inline constexpr unsigned places_max = 2048; // keys, slots or accounts of a thread

/// Well mixed from its arguments: the only source of randomness.
constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) {
    std::uint64_t x = a + 0x9e3779b97f4a7c15ULL * (b + 0x632be59bd9b4e019ULL * (c + 1));
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

struct thread_journal {
    std::atomic<std::uint64_t> started; // operations begun
    std::atomic<std::uint64_t> acked;   // operations whose call has returned
    std::uint64_t pending[6];           // the workload's, about operation 'acked'
    std::uint64_t last[places_max]; // the workload's, per place: effect of acknowledged operations

    bool unfinished() const { return started.load() != acked.load(); }
    void start() {
        started.store(acked.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    void ack() { acked.store(started.load(std::memory_order_relaxed), std::memory_order_release); }
    /// The unfinished operation turned out to be whole, or absent: 'last' says which.
    void settle() { acked.store(started.load()); }
};

struct journal {
    std::uint64_t seed;
    unsigned threads;
    std::atomic<std::uint32_t> phase; // what the child is doing
    // Results of verification.
    std::uint64_t lost;     // acknowledged operations without their effect
    std::uint64_t failures; // claims that did not hold, lost ones included
    std::uint64_t pending, re_executed, resumed, rolled_back, discarded;
    std::atomic<std::uint64_t> filled; // records that nobody changes, put in so far
    char text[4096];                   // the first failures, in words
    std::array<thread_journal, threads_max> of;

    std::uint64_t acknowledged() const {
        std::uint64_t sum = 0;
        for (unsigned t = 0; t < threads; ++t) sum += of[t].acked.load();
        return sum;
    }
    void fail(const char* format, ...) __attribute__((format(printf, 2, 3))) {
        ++failures;
        const std::size_t used = std::strlen(text);
        std::va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text + used, sizeof text - used, format, arguments);
        va_end(arguments);
        const std::size_t now = std::strlen(text);
        if (now + 2 < sizeof text) std::strcpy(text + now, "\n");
    }
};

enum phase : std::uint32_t { starting, opened, running, verified };

} // namespace kill_test
