// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plain.hpp"

#include "../child.hpp"
#include "../median.hpp"
#include "../run.hpp"
#include "../temporary_file.hpp"
#include "run.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace hf::bench::plain {
namespace {

using nlohmann::ordered_json;

struct plain_options {
    run_options run;
    std::string mode = "pmem";
    std::string only; // rows of structures whose name has it
    unsigned rounds = 5;
    std::vector<std::string> engines; // empty: all that the mode has
    bool json = false;
};

/// A row in one build: its rounds.
struct cell {
    std::vector<double> ns;
    row last;
};
struct table_row {
    std::string name;
    std::map<std::string, cell> by_engine;
};

double per_section(const row& of, std::uint64_t events) {
    return static_cast<double>(events) / static_cast<double>(of.sections);
}

void run_round(std::vector<table_row>& rows, const subject& one, const plain_options& options) {
    for (const std::string& engine : options.engines) {
        if (!has(engine, one)) continue;
        const ran done = run(engine, one, options.run);
        if (!done.difference.empty()) give_up(engine + ": " + done.difference);
        for (std::size_t r = 0; r < done.rows.size(); ++r) {
            cell& to = rows[r].by_engine[engine];
            rows[r].name = done.rows[r].name;
            to.last = done.rows[r];
            to.ns.push_back(1e9 * to.last.seconds / static_cast<double>(to.last.sections));
        }
    }
}

std::vector<table_row> measure_all(const plain_options& options) {
    std::vector<table_row> rows;
    for (const subject& each : corpus()) {
        if (std::string_view(each.name).find(options.only) == std::string_view::npos) continue;
        std::vector<table_row> own(each.erase == nullptr ? 1 : 2);
        for (unsigned round = 0; round < options.rounds; ++round) run_round(own, each, options);
        rows.insert(rows.end(), own.begin(), own.end());
    }
    return rows;
}

/// How many times as fast the default engine is as another.
const std::string by_default = "auto";
std::optional<double> default_over(const table_row& of, const std::string& engine) {
    const auto own = of.by_engine.find(by_default), other = of.by_engine.find(engine);
    if (engine == by_default || own == of.by_engine.end() || other == of.by_engine.end())
        return std::nullopt;
    return median(other->second.ns) / median(own->second.ns);
}

ordered_json json_of(const std::vector<table_row>& rows, const plain_options& options) {
    ordered_json out;
    out["name"] = "plain";
    out["mode"] = options.mode;
    out["ops"] = options.run.ops;
    out["records"] = options.run.records;
    out["rounds"] = options.rounds;
    out["directory"] = options.run.directory;
    out["rows"] = ordered_json::array();
    for (const table_row& each : rows) {
        ordered_json row;
        row["name"] = each.name;
        for (const std::string& engine : options.engines) {
            if (!each.by_engine.contains(engine)) continue;
            const cell& in = each.by_engine.at(engine);
            ordered_json one;
            one["ops_per_second"] = 1e9 / median(in.ns);
            one["ns_of_rounds"] = in.ns;
            const persist::counters& events = in.last.events;
            one["fences_per_section"] = per_section(in.last, events.fences);
            one["flushes_per_section"] = per_section(in.last, events.flushes);
            one["log_entries_per_section"] = per_section(in.last, events.log_entries);
            one["log_bytes_per_section"] = per_section(in.last, events.log_bytes);
            row[engine] = one;
        }
        for (const std::string& engine : options.engines)
            if (const auto ratio = default_over(each, engine)) row["auto_over_" + engine] = *ratio;
        out["rows"].push_back(row);
    }
    return out;
}

bool counts(const std::string& engine) {
    return engine.starts_with("undo") || engine == "clobber" || engine == "redo" ||
           engine == "auto";
}

std::string line_of(const table_row& row, const std::vector<std::string>& engines) {
    std::string speeds, fences, entries, ratios;
    for (const std::string& engine : engines) {
        const auto found = row.by_engine.find(engine);
        speeds += found == row.by_engine.end()
                      ? fmt::format("{:>10}", "-")
                      : fmt::format("{:>10.0f}", 1e6 / median(found->second.ns));
        if (counts(engine)) {
            const auto& last = found->second.last;
            fences += fmt::format("{:>6.2f}", per_section(last, last.events.fences));
            entries += fmt::format("{:>6.2f}", per_section(last, last.events.log_entries));
        }
        if (engine == by_default) continue;
        const auto ratio = default_over(row, engine);
        ratios += ratio ? fmt::format("{:>11.2f}", *ratio) : fmt::format("{:>11}", "-");
    }
    const auto wide = 6 * std::max<long>(3, std::ranges::count_if(engines, counts)) + 2;
    return fmt::format("{:<36}{} {:>{}} {:>{}} {}\n", row.name, speeds, fences, wide, entries, wide,
                       ratios);
}

std::string table_of(const std::vector<table_row>& rows, const plain_options& options) {
    std::string out = fmt::format("plain code in sections: mode {}, {} operations a row and "
                                  "round, {} elements before, {}; medians of {} interleaved "
                                  "rounds\n\n",
                                  options.mode, options.run.ops, options.run.records,
                                  options.run.directory, options.rounds);
    out += fmt::format("{:<36}", "1000 operations/s");
    for (const std::string& engine : options.engines) out += fmt::format("{:>10}", engine);
    const auto wide = 6 * std::max<long>(3, std::ranges::count_if(options.engines, counts)) + 2;
    out += fmt::format(" {:>{}} {:>{}} ", "fences", wide, "log entries", wide);
    for (const std::string& engine : options.engines)
        if (engine != by_default) out += fmt::format("{:>11}", "/" + engine);
    out += "\n";
    for (const table_row& each : rows) out += line_of(each, options.engines);
    return out + "\nfences, log entries: per section, of undo, undo-next, clobber, redo and "
                 "auto as far as they ran; /X: auto's speed over X's\n";
}

} // namespace

void add_plain(CLI::App& bench, char** arguments) {
    auto options = std::make_shared<plain_options>();
    CLI::App* command =
        bench.add_subcommand("plain", "other people's structures, as they stand, in sections");
    command->add_option("--engines", options->engines, "comma-separated, else all of the mode")
        ->delimiter(',')
        ->check(CLI::IsMember(builds(hf::mode::process)));
    command->add_option("--only", options->only, "structures whose name has this");
    command->add_option("--mode", options->mode, "durability: process or pmem")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    command->add_option("--ops", options->run.ops, "operations of each row and round")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--records", options->run.records, "elements before the clock starts")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--rounds", options->rounds)
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--dir", options->run.directory)->capture_default_str();
    command->add_flag("--json", options->json, "print one JSON object instead of a table");
    command->callback([options, arguments] {
        bench::run_options peers;
        peers.engine = "pmdk";
        peers.mode = options->mode;
        become_with(environment_for(peers), arguments);
        options->run.mode = mode_named(options->mode);
        const std::vector<std::string> there = builds(options->run.mode);
        if (options->engines.empty()) options->engines = there;
        for (const std::string& engine : options->engines)
            if (std::ranges::find(there, engine) == there.end())
                give_up(engine + ": no such build in mode " + options->mode);
        const std::vector<table_row> rows = measure_all(*options);
        fmt::print("{}\n",
                   options->json ? json_of(rows, *options).dump() : table_of(rows, *options));
    });
}

} // namespace hf::bench::plain
