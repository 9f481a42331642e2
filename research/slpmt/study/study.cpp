// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The paper's study, simulated, as JSON: all cells, the crash proofs, the annotations that crash
// injection finds, the area. The same seed gives the same bytes; how long it took goes to stderr.
#include <slpmt/marks.hpp>
#include <slpmt/mutants.hpp>
#include <slpmt/workloads/found_by_compiler.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <research/slpmt/study/cells.hpp>
#include <research/slpmt/study/search.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

namespace hf::slpmt {
namespace {

using json = nlohmann::ordered_json;

/// Does all tasks, two at a time; each leaves its result in a place of its own.
void in_parallel(std::size_t count, unsigned jobs, const std::function<void(std::size_t)>& task) {
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i; (i = next++) < count;) task(i);
    };
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min<std::size_t>(jobs, count); ++i) threads.emplace_back(work);
    work();
}

json to_json(const cell& one, const measured& got) {
    const auto& memory = one.what.parts.memory;
    return {{"figure", one.figure},
            {"workload", one.what.workload},
            {"technique", one.what.how.name},
            {"annotations", one.annotations},
            {"value_bytes", one.what.value_bytes},
            {"write_ns", memory.write_ns},
            {"queue_lines", memory.queue_lines},
            {"banks", memory.banks},
            {"interleave_bytes", memory.interleave_bytes},
            {"cores", one.what.parts.cores},
            {"instructions_between", one.what.instructions_between},
            {"insertions", one.what.insertions},
            {"simulated_ns", got.ns},
            {"pm_lines", got.pm_lines},
            {"accesses", got.accesses},
            {"log_lines", got.counts.log_lines},
            {"data_lines", got.counts.data_lines},
            {"lazy_lines", got.counts.lazy_lines},
            {"overflow_lines", got.counts.overflow_lines},
            {"records", got.counts.records},
            {"records_discarded", got.counts.discarded},
            {"lazy_at_risk_max", got.lazy_at_risk_max},
            {"lazy_at_risk_mean", got.lazy_at_risk_mean},
            {"wear_max", got.wear_max}};
}

struct proof_row {
    std::string_view workload;
    technique how;
    bool small;
    proof done;
};

std::vector<proof_row> proofs(std::uint64_t seed, unsigned jobs) {
    std::vector<proof_row> rows;
    for (const auto& names :
         {std::vector<std::string_view>(kernel_names.begin(), kernel_names.end()),
          std::vector<std::string_view>(kv_names.begin(), kv_names.end())})
        for (const std::string_view name : names)
            for (const technique& how :
                 {slpmt, fg, atom, ede, with_redo(slpmt, "SLPMT, redo"), with_redo(fg, "FG, redo")})
                for (const bool small : {false, true}) rows.push_back({name, how, small, {}});
    in_parallel(rows.size(), jobs, [&](std::size_t i) {
        proof_row& row = rows[i];
        const bool large = row.workload == "kv-rtree";
        proof_case what{.workload = row.workload,
                        .how = row.how,
                        .insertions = large                         ? 24U
                                      : row.workload == "hashtable" ? 160U
                                                                    : 80U,
                        .seed = seed,
                        .interrupt_every = large ? 40U : 10U};
        if (row.small) what.parts = small_caches();
        row.done = prove(what);
    });
    return rows;
}

json area() {
    const std::uint64_t first = (32 << 10) / 64 * mark::first_bits / 8;
    const std::uint64_t second = (256 << 10) / 64 * mark::second_bits / 8;
    std::uint64_t buffer = 0;
    for (unsigned tier = 0; tier < tiers; ++tier) buffer += tier_lines(tier) * 64;
    return {{"first_level_bytes", first},
            {"second_level_bytes", second},
            {"cache_bytes_if_both_first_levels_have_the_fields", 2 * first + second},
            {"log_buffer_bytes", buffer},
            {"signature_bytes", 4 * signature::bits / 8}};
}

/// Fig. 14 with the annotations of the compiler alone, as the paper has them there; and how many
/// of those by hand they are.
json add_found_of_store(std::vector<cell>& all, std::uint64_t seed) {
    json account = json::array();
    for (const char* workload : kv_names) {
        const auto found = annotations_by_compiler(workload);
        for (const std::uint64_t bytes : {256U, 16U}) {
            cell one{.figure = "14, annotated by the compiler",
                     .annotations = "by the compiler",
                     .what = {.workload = workload, .how = slpmt}};
            one.what.value_bytes = bytes;
            one.what.seed = seed;
            one.what.annotations = {found.begin(), found.end()};
            all.push_back(std::move(one));
        }
        const auto made = make_workload(workload, 16, layout{});
        const auto by_hand = std::ranges::count_if(
            made->sites(), [](const site& one) { return one.by_hand != eager_logged; });
        account.push_back({{"workload", workload},
                           {"by_hand", by_hand},
                           {"by_compiler", count_by_compiler(workload)}});
    }
    return account;
}

json to_json(std::string_view workload, const search_result& got) {
    return {{"workload", workload},
            {"by_hand", got.by_hand},
            {"by_compiler", count_by_compiler(workload)},
            {"by_freshness", got.fresh_of_hand},
            {"by_injection", got.found_of_hand},
            {"beyond_hand", got.beyond_hand},
            {"crashes", got.points}};
}

/// Fig. 13: annotations by the compiler, by freshness, and by injection.
void add_found(std::vector<cell>& all, json& account, std::uint64_t seed, unsigned jobs) {
    std::vector<search_result> found(kernel_names.size());
    in_parallel(found.size(), jobs,
                [&](std::size_t i) { found[i] = search(kernel_names[i], seed); });
    for (std::size_t i = 0; i < found.size(); ++i) {
        account.push_back(to_json(kernel_names[i], found[i]));
        const auto add = [&](const technique& how, std::string name,
                             const std::vector<annotation>& annotations) {
            cell one{.figure = "13",
                     .annotations = std::move(name),
                     .what = {.workload = kernel_names[i], .how = how}};
            one.what.seed = seed;
            one.what.annotations = annotations;
            all.push_back(std::move(one));
        };
        add(fg, "none", {});
        add(slpmt, "by hand", {});
        const auto compiled = annotations_by_compiler(kernel_names[i]);
        add(slpmt, "by the compiler", {compiled.begin(), compiled.end()});
        add(slpmt, "by freshness", found[i].fresh);
        add(slpmt, "by injection", found[i].found);
    }
}

} // namespace

int study(std::uint64_t seed, unsigned jobs, const std::string& file, const std::string& timing) {
    const auto began = std::chrono::steady_clock::now();
    const auto seconds = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    };
    json out{{"what", "simulated"}, {"seed", seed}};
    std::vector<cell> all = cells(seed);
    json account = json::array();
    add_found(all, account, seed, jobs);
    const json of_store = add_found_of_store(all, seed);
    const double searched = seconds();
    std::vector<measured> got(all.size());
    in_parallel(all.size(), jobs, [&](std::size_t i) { got[i] = measure(all[i].what); });
    const double took = seconds() - searched;
    std::uint64_t accesses = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        out["cells"].push_back(to_json(all[i], got[i]));
        accesses += got[i].accesses;
    }
    out["accesses"] = accesses;
    std::uint64_t violations = 0;
    for (const proof_row& row : proofs(seed, jobs)) {
        violations += row.done.violations;
        out["proofs"].push_back({{"workload", row.workload},
                                 {"technique", row.how.name},
                                 {"caches", row.small ? "tiny" : "whole"},
                                 {"crashes", row.done.points},
                                 {"recoveries_cut_short", row.done.interrupted},
                                 {"second_crashes", row.done.continued},
                                 {"violations", row.done.violations},
                                 {"first", row.done.first}});
    }
    const std::vector<mutant> faults = mutants(seed);
    std::vector<proof> judged(faults.size());
    in_parallel(faults.size(), jobs, [&](std::size_t i) { judged[i] = prove(faults[i].what); });
    std::uint64_t survived = 0;
    for (std::size_t i = 0; i < faults.size(); ++i) {
        survived += judged[i].violations == 0;
        out["mutants"].push_back({{"name", faults[i].name},
                                  {"rejected", judged[i].violations != 0},
                                  {"first", judged[i].first}});
    }
    out["annotations"] = account;
    out["annotations_of_store"] = of_store;
    out["area"] = area();
    std::ofstream{file} << out.dump(1) << '\n';
    if (!timing.empty())
        std::ofstream{timing} << json{{"seconds", seconds()},
                                      {"accesses_per_second", static_cast<double>(accesses) / took}}
                              << '\n';
    fmt::print(
        stderr,
        "{} cells, {:.1f} M simulated accesses in {:.1f} s: {:.1f} M/s; everything {:.1f} s\n",
        all.size(), static_cast<double>(accesses) / 1e6, took,
        static_cast<double>(accesses) / 1e6 / took, seconds());
    return violations == 0 && survived == 0 ? 0 : 1;
}

int record_to(const std::string& workload, std::uint64_t insertions, std::uint64_t value_bytes,
              std::uint64_t seed, const std::string& file) {
    if (make_workload(workload, value_bytes, layout{}) == nullptr || value_bytes % 8 != 0 ||
        insertions > 4000 || value_bytes > 4096) {
        fmt::print(stderr,
                   "expected a workload of the study, at most 4000 insertions and values of at "
                   "most 4096 bytes, in words; found {}, {}, {}\n",
                   workload, insertions, value_bytes);
        return 2;
    }
    const recorded made = record(
        {.workload = workload, .insertions = insertions, .value_bytes = value_bytes, .seed = seed});
    if (const status s = write_trace(file, made); !s.ok()) {
        fmt::print(stderr, "{}\n", s.what());
        return 2;
    }
    return 0;
}

int replay_all(const std::string& file) {
    const auto trace = read_trace(file);
    if (!trace) {
        fmt::print(stderr, "{}\n", trace.error().what());
        return 2;
    }
    json rows = json::array();
    for (const technique& how : {fg, fg_lg, fg_lz, slpmt, fg_lines, slpmt_lines, atom, ede}) {
        cell one{.figure = "replayed",
                 .annotations = "as recorded",
                 .what = {.workload = "", .how = how}};
        rows.push_back(to_json(one, replay(*trace, how, {})));
        for (const char* unknown : {"workload", "value_bytes", "insertions"})
            rows.back().erase(unknown);
    }
    fmt::print("{}\n", rows.dump(1));
    return 0;
}

} // namespace hf::slpmt

int main(int argc, char** argv) {
    CLI::App app{"SLPMT's study, simulated"};
    std::uint64_t seed = 1;
    unsigned jobs = std::max(1U, std::thread::hardware_concurrency());
    std::string file = "slpmt.json";
    app.add_option("--seed", seed, "of the keys");
    app.add_option("--jobs", jobs, "cells at a time");
    app.add_option("--out", file, "where the JSON goes");
    std::string timing;
    app.add_option("--timing", timing, "where it goes how long it took");
    std::string workload, trace;
    std::uint64_t insertions = 1000, value_bytes = 256;
    auto* recording = app.add_subcommand("record", "a workload's accesses, as a trace");
    recording->add_option("workload", workload, "hashtable, rbtree, heap, avl, kv-btree …")
        ->required();
    recording->add_option("trace", trace, "the file")->required();
    recording->add_option("--insertions", insertions);
    recording->add_option("--value-bytes", value_bytes);
    auto* replaying = app.add_subcommand("replay", "a trace on every technique: figures as JSON");
    replaying->add_option("trace", trace, "the file")->required();
    CLI11_PARSE(app, argc, argv);
    if (*recording) return hf::slpmt::record_to(workload, insertions, value_bytes, seed, trace);
    if (*replaying) return hf::slpmt::replay_all(trace);
    return hf::slpmt::study(seed, jobs, file, timing);
}
