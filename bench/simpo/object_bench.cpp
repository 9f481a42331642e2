// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "object_bench.hpp"

#include "../run.hpp"

#include <holdfast/simpo.hpp>

#include <fmt/format.h>

#include <utility>

namespace hf::bench {

CLI::App& add_object_bench(CLI::App& bench, const char* what, object_settings& to,
                           const std::vector<std::string>& engines) {
    CLI::App& command = *bench.add_subcommand(to.name, what);
    command
        .add_option("--engine", to.engine, "none: volatile, under locks; simpo, or a variant of it")
        ->check(CLI::IsMember(engines))
        ->capture_default_str();
    command.add_option("--mode", to.mode, "durability: process, pmem or power")
        ->check(CLI::IsMember({"process", "pmem", "power"}))
        ->capture_default_str();
    command.add_option("--threads", to.threads)->check(CLI::Range(1, 64))->capture_default_str();
    command.add_option("--ops", to.ops, "calls in all")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    command.add_option("--dir", to.directory, "where the pool goes")->capture_default_str();
    command.add_flag("--json", to.json, "print one JSON object");
    return command;
}

open_options pool_for(const object_settings& how, std::string layout, std::uint64_t create_bytes) {
    open_options options;
    options.layout = std::move(layout);
    options.create_bytes = create_bytes;
    options.mode = mode_named(how.mode);
    options.engines = {simpo::engine()};
    options.expert.seal = false;
    return options;
}

nlohmann::ordered_json report_of(const object_settings& how, const measured& run, bool emulated) {
    nlohmann::ordered_json out;
    out["name"] = how.name;
    out["engine"] = how.engine;
    out["mode"] = how.engine == "none" ? "volatile" : how.mode;
    out["threads"] = how.threads;
    out["ops"] = how.ops;
    out["seconds"] = run.seconds;
    out["ops_per_second"] = static_cast<double>(how.ops) / run.seconds;
    add_counts(out, run, how.ops, {emulated, true, true, ""});
    out["emulated"] = emulated;
    return out;
}

void print(const object_settings& how, const nlohmann::ordered_json& report) {
    fmt::print("{}\n", report.dump(how.json ? -1 : 2));
}

} // namespace hf::bench
