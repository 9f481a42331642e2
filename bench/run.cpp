// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#include "containers/sequence_run.hpp"
#include "latency.hpp"
#include "lock_based/lock_based_run.hpp"
#include "measured.hpp"
#include "temporary_file.hpp"
#include "workload.hpp"

#include <holdfast/author/persist.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

namespace hf::bench {
namespace {

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

/// How long each batch took.
struct batch_times {
    std::mutex lock;
    std::vector<double> ms;

    /// The longest of so many of a thousand. Requires: sorted, not empty.
    double longest_of(std::size_t thousandths) const {
        return ms[std::min(ms.size() - 1, ms.size() * thousandths / 1000)];
    }
};

// todo: one list per thread.
measured measure(map_under_test& map, const std::vector<std::vector<operation>>& todo,
                 std::size_t value_bytes, std::uint64_t batch, batch_times* times) {
    const noise values(value_bytes);
    return measure_threads(static_cast<unsigned>(todo.size()), [&](unsigned w) {
        std::vector<std::uint64_t> room(value_bytes / 8 + 1);
        std::vector<double> own_ms;
        if (times != nullptr) own_ms.reserve(todo[w].size() / batch + 1);
        for (std::size_t at = 0; at < todo[w].size();) {
            const std::size_t end = std::min<std::size_t>(at + batch, todo[w].size());
            const auto began = std::chrono::steady_clock::now();
            map.begin_batch(end - at);
            for (; at < end; ++at)
                if (!carry_out(map, todo[w][at], values, room.data())) return false;
            map.end_batch();
            if (times == nullptr) continue;
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - began;
            own_ms.push_back(took.count());
        }
        if (times == nullptr) return true;
        const std::scoped_lock held{times->lock};
        times->ms.insert(times->ms.end(), own_ms.begin(), own_ms.end());
        return true;
    });
}

plan_options plan_of(const run_options& options) {
    plan_options to{{}, distribution::zipfian, 0, options.ops, options.threads};
    if (options.distribution == "uniform") to.which = distribution::uniform;
    if (const auto named = ycsb_mix(options.name)) {
        to.operations = *named;
        to.records = options.records;
    } else {
        to.operations.read = options.read_percent;
        if (measures_container(options)) to.records = options.records;
    }
    return to;
}

void add_times(nlohmann::ordered_json& out, batch_times& times) {
    if (times.ms.empty()) return;
    std::ranges::sort(times.ms);
    out["batch_ms_median"] = times.longest_of(500);
    out["batch_ms_p999"] = times.longest_of(999);
    out["batch_ms_max"] = times.ms.back();
}

std::uint64_t insertions(const std::vector<std::vector<operation>>& lists) {
    std::uint64_t count = 0;
    for (const auto& list : lists)
        for (const operation& one : list) count += one.kind == operation_kind::insert ? 1 : 0;
    return count;
}

} // namespace

hf::mode mode_named(std::string_view name) {
    for (const hf::mode each : {hf::mode::pmem, hf::mode::power})
        if (name == hf::name(each)) return each;
    return hf::mode::process;
}

std::vector<std::string> run_names() {
    std::vector<std::string> names;
    for (const structure which : all_structures()) names.emplace_back(name_of(which));
    for (const sequence which : all_sequences()) names.emplace_back(name_of(which));
    for (const lock_based which : all_lock_based()) names.emplace_back(name_of(which));
    names.emplace_back(ycsb_load);
    for (const char last : {'a', 'b', 'c', 'd', 'e', 'f'})
        names.push_back(std::string("ycsb-") + last);
    return names;
}

bool measures_container(const run_options& options) {
    return sequence_named(options.name) || options.name == name_of(structure::map) ||
           options.name == name_of(structure::set);
}

bool may_read(const run_options& options) {
    if (const auto which = sequence_named(options.name)) return *which == sequence::vector;
    if (lock_based_named(options.name)) return false;
    return !ycsb_mix(options.name) && options.name != ycsb_load;
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

nlohmann::ordered_json speed_of(const run_options& options, const measured& result,
                                const map_facts& facts) {
    nlohmann::ordered_json out;
    out["name"] = options.name;
    out["engine"] = options.engine;
    out["mode"] = options.mode;
    out["threads"] = options.threads;
    out["ops"] = options.ops;
    out["ops_per_second"] = static_cast<double>(options.ops) / result.seconds;
    add_counts(out, result, options.ops, facts);
    return out;
}

void add_machine(nlohmann::ordered_json& out, const run_options& options, const map_facts& facts) {
    out["durability"] = facts.durability.empty() ? nlohmann::ordered_json(nullptr)
                                                 : nlohmann::ordered_json(facts.durability);
    out["prefaulted"] = options.map.prefault;
    out["directory"] = options.map.directory;
    out["emulated_pm"] = facts.emulated_pm;
    out["latency_model"] = options.latency.empty() ? nlohmann::ordered_json(nullptr)
                                                   : nlohmann::ordered_json(options.latency);
    out["flush_instruction"] = hf::persist::flush_instruction();
    out["cpu"] = cpu_name();
    out["note"] = !options.latency.empty() && !facts.counts_events
                      ? facts.note + "; runs without the latency model"
                      : facts.note;
}

nlohmann::ordered_json run(const run_options& options) {
    if (const auto which = sequence_named(options.name)) return run_sequence(options, *which);
    if (const auto which = lock_based_named(options.name)) return run_lock_based(options, *which);
    const plan_options planned = plan_of(options);
    if (options.map.which == structure::set && options.name != "set")
        give_up(options.name + " reads values: a set has none");
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
    sized.mode = mode_named(options.mode);
    install_latency(options);
    const std::unique_ptr<map_under_test> map = make_map(options.engine, sized);
    if (map == nullptr)
        give_up(options.engine + ": no such engine for " + std::string(name_of(sized.which)));
    if (!load.empty()) measure(*map, load, sized.value_bytes, 1024, nullptr);
    load.clear();
    batch_times times;
    const bool timed =
        sized.mode == hf::mode::power; // elsewhere a batch may be as short as a clock's reading
    const measured result =
        measure(*map, todo, sized.value_bytes, options.batch, timed ? &times : nullptr);
    const map_facts facts = map->facts();

    nlohmann::ordered_json out = speed_of(options, result, facts);
    out["batch"] = options.batch;
    add_times(out, times);
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
    add_memory(out, map->memory());
    add_machine(out, options, facts);
    return out;
}

} // namespace hf::bench
