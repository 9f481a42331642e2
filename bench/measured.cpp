// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "measured.hpp"

#include <ctime>
#include <fstream>
#include <string>

namespace hf::bench {

persist::counters events_now() {
    persist::counters now = persist::thread_counters();
    const libpmem_events others = libpmem_events_now();
    now.flushes += others.flushes;
    now.fences += others.fences;
    now.ordering_points += others.fences;
    now.nt_stores += others.nt_stores;
    return now;
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::uint64_t written_bytes_now() {
    std::ifstream io("/proc/self/io");
    for (std::string line; std::getline(io, line);)
        if (line.starts_with("wchar: ")) return std::stoull(line.substr(line.find(' ')));
    return 0;
}

void add_counts(nlohmann::ordered_json& out, const measured& result, std::uint64_t ops,
                const map_facts& facts) {
    const auto per_op = [&](bool counted, std::uint64_t events) -> nlohmann::ordered_json {
        if (!counted) return nullptr;
        return static_cast<double>(events) / static_cast<double>(ops);
    };
    const bool ours = facts.counts_events && facts.counts_log && !libpmem_is_counted();
    out["fences_per_op"] = per_op(facts.counts_events, result.events.fences);
    out["flushes_per_op"] = per_op(facts.counts_events, result.events.flushes);
    out["nt_stores_per_op"] = per_op(facts.counts_events, result.events.nt_stores);
    out["ordering_points_per_op"] = per_op(facts.counts_events, result.events.ordering_points);
    out["log_entries_per_op"] = per_op(facts.counts_log, result.events.log_entries);
    out["log_bytes_per_op"] = per_op(facts.counts_log, result.events.log_bytes);
    out["pm_bytes_per_op"] = per_op(ours, result.events.pm_bytes);
    out["cpu_ns_per_op"] = 1e9 * result.cpu_seconds / static_cast<double>(ops);
    out["written_bytes_per_op"] =
        static_cast<double>(result.written_bytes) / static_cast<double>(ops);
}

void add_memory(nlohmann::ordered_json& out, const std::optional<memory_use>& memory) {
    const auto per_element = [&](std::uint64_t bytes) {
        return static_cast<double>(bytes) / static_cast<double>(memory->elements);
    };
    out["elements"] = nullptr;
    out["bytes_per_element"] = nullptr;
    out["heap_bytes_per_element"] = nullptr;
    if (!memory || memory->elements == 0) return;
    out["elements"] = memory->elements;
    out["bytes_per_element"] = per_element(memory->bytes);
    if (memory->heap_bytes) out["heap_bytes_per_element"] = per_element(*memory->heap_bytes);
}

} // namespace hf::bench
