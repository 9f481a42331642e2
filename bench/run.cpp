// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include "latency.hpp"
#include "peers/libpmem_events.hpp"
#include "temporary_file.hpp"
#include "workload.hpp"

#include <holdfast/persist.hpp>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace hf::bench {
namespace {

using counters = hf::persist::counters;

counters& operator+=(counters& to, const counters& more) {
    to.flushes += more.flushes;
    to.fences += more.fences;
    to.ordering_points += more.ordering_points;
    to.log_entries += more.log_entries;
    to.log_bytes += more.log_bytes;
    to.pm_bytes += more.pm_bytes;
    return to;
}
counters events_now() {
    counters now = hf::persist::thread_counters();
    const libpmem_events others = libpmem_events_now();
    now.flushes += others.flushes;
    now.fences += others.fences;
    now.ordering_points += others.fences;
    return now;
}
counters since(const counters& before) {
    counters now = events_now();
    now.flushes -= before.flushes;
    now.fences -= before.fences;
    now.ordering_points -= before.ordering_points;
    now.log_entries -= before.log_entries;
    now.log_bytes -= before.log_bytes;
    now.pm_bytes -= before.pm_bytes;
    return now;
}

bool carry_out(map_under_test& map, const operation& what, const noise& values, void* room) {
    switch (what.kind) {
    case operation_kind::insert: return map.insert(what.key, values.value_of(what.key));
    case operation_kind::read: return map.find(what.key, room);
    case operation_kind::update: return map.update(what.key, values.value_of(what.key + 1));
    case operation_kind::read_modify_write:
        return map.find(what.key, room) && map.update(what.key, values.value_of(what.key + 2));
    case operation_kind::scan: return map.scan(what.key, what.length, room) != 0;
    }
    return false;
}

struct worker_result {
    counters events{};
    bool complete = true;
};

void work(map_under_test& map, const std::vector<operation>& todo, const noise& values,
          std::size_t value_bytes, worker_result& result) {
    std::vector<std::uint64_t> room(value_bytes / 8 + 1);
    const counters before = events_now();
    for (const operation& one : todo)
        if (!carry_out(map, one, values, room.data())) {
            result.complete = false;
            return;
        }
    result.events = since(before);
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

// todo: one list per thread.
measured measure(map_under_test& map, const std::vector<std::vector<operation>>& todo,
                 std::size_t value_bytes) {
    const noise values(value_bytes);
    const std::size_t threads = todo.size();
    std::vector<worker_result> results(threads);
    std::vector<std::thread> workers;
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    for (unsigned w = 1; w < threads; ++w)
        workers.emplace_back([&, w] {
            ready.fetch_add(1);
            while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
            work(map, todo[w], values, value_bytes, results[w]);
        });
    while (ready.load() != threads - 1) std::this_thread::yield();
    const double cpu_before = cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    go.store(true, std::memory_order_release);
    // One thread means one thread: no second one idles.
    work(map, todo[0], values, value_bytes, results[0]);
    for (std::thread& worker : workers) worker.join();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

    measured all{elapsed.count(), cpu_seconds() - cpu_before, {}};
    for (const worker_result& one : results) {
        if (!one.complete) give_up("an operation failed: the pool is full, or a key is missing");
        all.events += one.events;
    }
    return all;
}

plan_options plan_of(const run_options& options) {
    plan_options to{{}, distribution::zipfian, 0, options.ops, options.threads};
    if (options.distribution == "uniform") to.which = distribution::uniform;
    if (const auto named = ycsb_mix(options.name)) {
        to.operations = *named;
        to.records = options.records;
    } else {
        to.operations.read = options.read_percent;
    }
    return to;
}

std::uint64_t insertions(const std::vector<std::vector<operation>>& lists) {
    std::uint64_t count = 0;
    for (const auto& list : lists)
        for (const operation& one : list) count += one.kind == operation_kind::insert ? 1 : 0;
    return count;
}

void add_counts(nlohmann::ordered_json& out, const measured& result, const run_options& options,
                const map_facts& facts) {
    const auto per_op = [&](bool counted, std::uint64_t events) -> nlohmann::ordered_json {
        if (!counted) return nullptr;
        return static_cast<double>(events) / static_cast<double>(options.ops);
    };
    const bool ours = facts.counts_events && facts.counts_log && !libpmem_is_counted();
    out["fences_per_op"] = per_op(facts.counts_events, result.events.fences);
    out["flushes_per_op"] = per_op(facts.counts_events, result.events.flushes);
    out["ordering_points_per_op"] = per_op(facts.counts_events, result.events.ordering_points);
    out["log_entries_per_op"] = per_op(facts.counts_log, result.events.log_entries);
    out["log_bytes_per_op"] = per_op(facts.counts_log, result.events.log_bytes);
    out["pm_bytes_per_op"] = per_op(ours, result.events.pm_bytes);
    out["cpu_ns_per_op"] = 1e9 * result.cpu_seconds / static_cast<double>(options.ops);
}

} // namespace

std::vector<std::string> run_names() {
    std::vector<std::string> names;
    for (const structure which : all_structures()) names.emplace_back(name_of(which));
    names.emplace_back(ycsb_load);
    for (const char last : {'a', 'b', 'c', 'd', 'e', 'f'})
        names.push_back(std::string("ycsb-") + last);
    return names;
}

std::string cpu_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
}

std::vector<std::pair<std::string, std::string>> environment_for(const run_options& options) {
    if (!options.engine.starts_with("pmdk")) return {};
    std::vector<std::pair<std::string, std::string>> wanted{{"PMEM_IS_PMEM_FORCE", "1"}};
    if (options.mode == "process") wanted.emplace_back("PMEM_NO_FLUSH", "1");
    const auto model = latency_model_of(options.latency);
    if (model || options.count_peers) {
        const auto program = std::filesystem::read_symlink("/proc/self/exe");
        const auto library = program.parent_path().parent_path() / "lib" / "libhf_bench_pmem.so";
        if (!std::filesystem::exists(library)) give_up("no " + library.string());
        wanted.emplace_back("LD_PRELOAD", library.string());
    }
    if (model)
        wanted.emplace_back("HOLDFAST_BENCH_LATENCY", std::to_string(model->first_line_ns) + "," +
                                                          std::to_string(model->further_line_ns));
    return wanted;
}

void install_latency(const run_options& options) {
    const auto model = latency_model_of(options.latency);
    if (!model) return;
    if (options.mode != "pmem") give_up("--latency belongs to mode pmem");
    persist::set_latency_model(*model);
}

nlohmann::ordered_json run(const run_options& options) {
    const plan_options planned = plan_of(options);
    if (planned.operations.scan != 0 && !ordered(options.map.which))
        give_up(options.name + " scans: it needs an ordered structure");
    std::vector<std::vector<operation>> load;
    std::vector<std::vector<operation>> todo;
    for (unsigned w = 0; w < options.threads; ++w) {
        if (planned.records != 0) load.push_back(plan_load(planned, w));
        todo.push_back(plan(planned, w));
    }
    map_options sized = options.map;
    sized.keys = std::max<std::uint64_t>(1, planned.records + insertions(todo));
    sized.threads = options.threads;
    sized.mode = options.mode == "pmem" ? hf::mode::pmem : hf::mode::process;
    install_latency(options);
    const std::unique_ptr<map_under_test> map = make_map(options.engine, sized);
    if (map == nullptr)
        give_up(options.engine + ": no such engine for " + std::string(name_of(sized.which)));
    if (!load.empty()) measure(*map, load, sized.value_bytes);
    load.clear();
    const measured result = measure(*map, todo, sized.value_bytes);
    map_facts facts = map->facts();
    if (!options.latency.empty() && !facts.counts_events)
        facts.note += "; runs without the latency model";

    nlohmann::ordered_json out;
    out["name"] = options.name;
    out["engine"] = options.engine;
    out["mode"] = options.mode;
    out["threads"] = options.threads;
    out["ops"] = options.ops;
    out["ops_per_second"] = static_cast<double>(options.ops) / result.seconds;
    add_counts(out, result, options, facts);
    out["structure"] = name_of(sized.which);
    out["records"] = planned.records;
    out["distribution"] = planned.records == 0 ? nlohmann::ordered_json(nullptr)
                          : planned.operations.latest
                              ? nlohmann::ordered_json("latest")
                              : nlohmann::ordered_json(options.distribution);
    out["key_bytes"] = key_bytes(sized.which);
    out["value_bytes"] = sized.value_bytes;
    out["read_percent"] = options.read_percent;
    out["reserved"] = sized.reserve;
    out["prefaulted"] = sized.prefault;
    out["directory"] = sized.directory;
    out["emulated_pm"] = facts.emulated_pm;
    out["latency_model"] = options.latency.empty() ? nlohmann::ordered_json(nullptr)
                                                   : nlohmann::ordered_json(options.latency);
    out["flush_instruction"] = hf::persist::flush_instruction();
    out["cpu"] = cpu_name();
    out["note"] = facts.note;
    return out;
}

} // namespace hf::bench
