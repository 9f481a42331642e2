// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "hashmap.hpp"

#include "temporary_file.hpp"
#include "workload.hpp"

#include <holdfast/persist.hpp>

#include <atomic>
#include <chrono>
#include <ctime>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace hf::bench {
namespace {

using counters = hf::persist::counters;

struct worker_result {
    counters events{};
    bool complete = true;
};

void work(map_under_test& map, const hashmap_options& options, const noise& values, unsigned worker,
          worker_result& result) {
    const std::uint64_t mine =
        options.ops / options.threads + (worker < options.ops % options.threads);
    std::vector<std::uint64_t> read(options.map.value_bytes / 8 + 1);
    std::minstd_rand choice(worker + 1);
    std::uint64_t inserted = 0;
    const counters before = hf::persist::thread_counters();
    for (std::uint64_t i = 0; i < mine && result.complete; ++i) {
        if (inserted != 0 && options.read_percent != 0 && choice() % 100 < options.read_percent) {
            const std::uint64_t key = scrambled(choice() % inserted * options.threads + worker);
            result.complete = map.find(key, read.data());
            continue;
        }
        const std::uint64_t key = scrambled(inserted++ * options.threads + worker);
        result.complete = map.insert(key, values.value_of(key));
    }
    const counters& after = hf::persist::thread_counters();
    result.events.flushes = after.flushes - before.flushes;
    result.events.fences = after.fences - before.fences;
    result.events.log_entries = after.log_entries - before.log_entries;
    result.events.log_bytes = after.log_bytes - before.log_bytes;
    result.events.pm_bytes = after.pm_bytes - before.pm_bytes;
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct measured {
    double seconds;
    double cpu_seconds;
    counters events;
};

measured measure(map_under_test& map, const hashmap_options& options) {
    const noise values(options.map.value_bytes);
    std::vector<worker_result> results(options.threads);
    std::vector<std::thread> workers;
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    for (unsigned w = 1; w < options.threads; ++w)
        workers.emplace_back([&, w] {
            ready.fetch_add(1);
            while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
            work(map, options, values, w, results[w]);
        });
    while (ready.load() != options.threads - 1) std::this_thread::yield();
    const double cpu_before = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    go.store(true, std::memory_order_release);
    work(map, options, values, 0, results[0]); // one thread means one thread: no second one idles
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

    measured all{elapsed.count(), cpu_seconds() - cpu_before, {}};
    for (const worker_result& one : results) {
        if (!one.complete) give_up("an operation failed: the pool is full, or a key is missing");
        all.events.flushes += one.events.flushes;
        all.events.fences += one.events.fences;
        all.events.log_entries += one.events.log_entries;
        all.events.log_bytes += one.events.log_bytes;
        all.events.pm_bytes += one.events.pm_bytes;
    }
    return all;
}

} // namespace

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

std::vector<std::pair<std::string, std::string>> environment_for(std::string_view engine,
                                                                 std::string_view mode) {
    if (!engine.starts_with("pmdk")) return {};
    if (mode == "process") return {{"PMEM_IS_PMEM_FORCE", "1"}, {"PMEM_NO_FLUSH", "1"}};
    return {{"PMEM_IS_PMEM_FORCE", "1"}};
}

nlohmann::ordered_json run_hashmap(const hashmap_options& options) {
    const std::unique_ptr<map_under_test> map = make_map(options.engine, options.map);
    if (map == nullptr) give_up("unknown engine: " + options.engine);
    const measured result = measure(*map, options);
    const map_facts facts = map->facts();

    const auto per_op = [&](std::uint64_t events) -> nlohmann::ordered_json {
        if (!facts.counts_events) return nullptr;
        return static_cast<double>(events) / static_cast<double>(options.ops);
    };
    nlohmann::ordered_json out;
    out["name"] = "hashmap";
    out["engine"] = options.engine;
    out["mode"] = options.mode;
    out["threads"] = options.threads;
    out["ops"] = options.ops;
    out["ops_per_second"] = static_cast<double>(options.ops) / result.seconds;
    out["fences_per_op"] = per_op(result.events.fences);
    out["flushes_per_op"] = per_op(result.events.flushes);
    out["log_entries_per_op"] = per_op(result.events.log_entries);
    out["log_bytes_per_op"] = per_op(result.events.log_bytes);
    out["pm_bytes_per_op"] = per_op(result.events.pm_bytes);
    out["cpu_ns_per_op"] = 1e9 * result.cpu_seconds / static_cast<double>(options.ops);
    out["value_bytes"] = options.map.value_bytes;
    out["read_percent"] = options.read_percent;
    out["reserved"] = options.map.reserve;
    out["prefaulted"] = options.map.prefault;
    out["directory"] = options.map.directory;
    out["emulated_pm"] = facts.emulated_pm;
    out["flush_instruction"] = hf::persist::flush_instruction();
    out["cpu"] = cpu_name();
    out["note"] = facts.note;
    return out;
}

} // namespace hf::bench
