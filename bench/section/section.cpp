// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "section.hpp"

#include "../child.hpp"
#include "../median.hpp"
#include "../run.hpp"
#include "section_run.hpp"
#include "sections_under_test.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace hf::bench {
namespace {

using nlohmann::ordered_json;

struct command_options {
    section_options each;             // engine is replaced
    std::vector<std::string> engines; // empty: all that the mode has
    unsigned rounds = 5;
    bool json = false;
};

environment environment_for(const section_options& each) {
    run_options same;
    same.engine = each.engine;
    same.mode = each.mode;
    return bench::environment_for(same);
}

/// One engine and one round: what a child is asked for.
ordered_json in_child(const section_options& each) {
    std::vector<std::string> arguments{"bench",
                                       "section",
                                       "--json",
                                       "--rounds",
                                       "1",
                                       "--engines",
                                       each.engine,
                                       "--mode",
                                       each.mode,
                                       "--dir",
                                       each.directory,
                                       "--ops",
                                       std::to_string(each.ops)};
    if (each.instructions) arguments.emplace_back("--instructions");
    if (!each.prefault) arguments.emplace_back("--no-prefault");
    return ordered_json::parse(output_of_self(arguments, environment_for(each)))["rows"][0];
}

ordered_json row_of(const section_options& each) {
    ordered_json row;
    row["engine"] = each.engine;
    row["cases"] = run_sections(each);
    return row;
}

/// Rounds of one engine as a row: medians, and the ratio to the first row.
ordered_json combined(const std::vector<ordered_json>& rounds, const ordered_json& first) {
    ordered_json row = rounds.back();
    for (const std::string& name : section_cases()) {
        std::vector<double> ns;
        for (const ordered_json& each : rounds)
            ns.push_back(each["cases"][name]["ns"].get<double>());
        ordered_json& to = row["cases"][name];
        to["ns"] = median(ns);
        to["ns_of_rounds"] = ns;
        to["ratio_to_first"] =
            first.is_null() ? 1.0 : median(ns) / first["cases"][name]["ns"].get<double>();
    }
    return row;
}

ordered_json measure(const command_options& options) {
    const bool alone = options.engines.size() == 1 && options.rounds == 1;
    std::vector<std::vector<ordered_json>> rounds(options.engines.size());
    for (unsigned round = 0; round < options.rounds; ++round)
        for (std::size_t i = 0; i < options.engines.size(); ++i) {
            section_options each = options.each;
            each.engine = options.engines[i];
            each.instructions = each.instructions && round + 1 == options.rounds; // always the same
            rounds[i].push_back(alone ? row_of(each) : in_child(each));
        }
    ordered_json out;
    out["name"] = "section";
    out["mode"] = options.each.mode;
    out["ops"] = options.each.ops;
    out["rounds"] = options.rounds;
    out["directory"] = options.each.directory;
    out["cpu"] = cpu_name();
    out["rows"] = ordered_json::array();
    for (const auto& each : rounds) {
        const ordered_json row = combined(each, out["rows"].empty() ? nullptr : out["rows"][0]);
        out["rows"].push_back(row);
    }
    return out;
}

template <class Text>
void add_rows(std::string& out, const ordered_json& measured, const Text& text_of) {
    for (const ordered_json& row : measured["rows"]) {
        out += fmt::format("\n{:<12}", row["engine"].get<std::string>());
        for (const std::string& name : section_cases())
            out += fmt::format("{:>17}", text_of(row["cases"][name]));
    }
}

std::string table_of(const ordered_json& measured, bool instructions) {
    std::string out = fmt::format(
        "what a section costs: mode {}, {} calls a case and round, {}\n{}; processor ns a call "
        "and, in brackets, over {}; medians of {} interleaved rounds, each in a fresh process on "
        "a fresh file\n\n{:<12}",
        measured["mode"].get<std::string>(), measured["ops"].get<std::uint64_t>(),
        measured["directory"].get<std::string>(), measured["cpu"].get<std::string>(),
        measured["rows"][0]["engine"].get<std::string>(), measured["rounds"].get<unsigned>(),
        "engine");
    for (const std::string& name : section_cases()) out += fmt::format("{:>17}", name);
    add_rows(out, measured, [](const ordered_json& one) {
        return fmt::format("{:>9.1f} {:>7}", one["ns"].get<double>(),
                           fmt::format("({:.1f})", one["ratio_to_first"].get<double>()));
    });
    if (!instructions) return out;
    out += "\n\ninstructions";
    add_rows(out, measured, [](const ordered_json& one) {
        const ordered_json& count = one["instructions"];
        return count.is_null() ? std::string("-") : fmt::format("{:.1f}", count.get<double>());
    });
    return out;
}

} // namespace

void add_section(CLI::App& bench, char** arguments) {
    auto options = std::make_shared<command_options>();
    section_options& each = options->each;
    CLI::App* command = bench.add_subcommand("section", "what a section costs, beside one by hand");
    command
        ->add_option("--engines", options->engines,
                     "comma-separated, else all of the mode; ratios are to the first")
        ->delimiter(',')
        ->check(CLI::IsMember(engines_for_sections(hf::mode::pmem)));
    command->add_option("--mode", each.mode, "durability: process or pmem")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    command->add_option("--ops", each.ops, "calls of each case and round; of the long ones a 16th")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command->add_option("--rounds", options->rounds)
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--dir", each.directory, "where pool files go")->capture_default_str();
    command->add_flag("!--no-prefault", each.prefault, "do not touch the files' pages first");
    command->add_flag("--instructions", each.instructions, "count each case's instructions, too");
    command->add_flag("--json", options->json, "print one JSON object instead of a table");
    command->callback([options, arguments] {
        if (options->engines.empty())
            options->engines = engines_for_sections(mode_named(options->each.mode));
        if (options->engines.size() == 1) {
            options->each.engine = options->engines[0];
            become_with(environment_for(options->each), arguments);
        }
        const ordered_json result = measure(*options);
        fmt::print("{}\n",
                   options->json ? result.dump() : table_of(result, options->each.instructions));
    });
}

} // namespace hf::bench
