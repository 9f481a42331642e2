// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The clock and the counters around what is measured, and what every run's JSON says of them.
#pragma once

#include "events.hpp"
#include "map_under_test.hpp"
#include "peers/libpmem_events.hpp"
#include "temporary_file.hpp"

#include <holdfast/author/persist.hpp>

#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace hf::bench {

/// Persistence events of the calling thread so far: ours and, where they are counted, libpmem's.
persist::counters events_now();
/// Processor time of the process.
double cpu_seconds();
/// Bytes that the process has given to write() and its like so far; 0 if the kernel does not report
/// them. If they are synced before they are written again, the device gets as many, except for
/// parts of blocks. The kernel's count of bytes written to the device ('write_bytes') is no
/// measure: it counts a large folio as a page.
std::uint64_t written_bytes_now();

struct measured {
    double seconds;
    double cpu_seconds;
    persist::counters events;
    std::uint64_t written_bytes = 0; // given to write() by the whole process
};

/// Runs work(0) … work(threads - 1) at once, the first on this thread: one thread means one thread,
/// no second one idles. Ends the process when one of them returns false.
template <class Work> measured measure_threads(unsigned threads, const Work& work) {
    struct part {
        persist::counters events{};
        bool complete = false;
    };
    std::vector<part> parts(threads);
    const auto run = [&](unsigned w) {
        const persist::counters before = events_now();
        parts[w].complete = work(w);
        add_events(parts[w].events, before, events_now());
    };
    std::vector<std::thread> workers;
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    for (unsigned w = 1; w < threads; ++w)
        workers.emplace_back([&, w] {
            ready.fetch_add(1);
            while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
            run(w);
        });
    while (ready.load() != threads - 1) std::this_thread::yield();
    const double cpu_before = cpu_seconds();
    const std::uint64_t written_before = written_bytes_now();
    const auto start = std::chrono::steady_clock::now();
    go.store(true, std::memory_order_release);
    run(0);
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

    measured all{
        elapsed.count(), cpu_seconds() - cpu_before, {}, written_bytes_now() - written_before};
    for (const part& one : parts) {
        if (!one.complete) give_up("an operation failed: the pool is full, or a key is missing");
        add_events(all.events, {}, one.events);
    }
    return all;
}

/// Events per operation, where they are counted, and the processor's time.
void add_counts(nlohmann::ordered_json& out, const measured& result, std::uint64_t ops,
                const map_facts& facts);
/// Memory per element, where it is known.
void add_memory(nlohmann::ordered_json& out, const std::optional<memory_use>& memory);

} // namespace hf::bench
