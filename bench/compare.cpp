// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compare.hpp"

#include "child.hpp"
#include "containers/sequence_under_test.hpp"
#include "lock_based/lock_based_under_test.hpp"
#include "median.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace hf::bench {
namespace {

std::vector<std::string> arguments_for(const run_options& run,
                                       const std::vector<std::string>& own) {
    std::vector<std::string> arguments{"bench", run.name, "--json"};
    const auto add = [&](const char* option, std::string value) {
        arguments.emplace_back(option);
        arguments.push_back(std::move(value));
    };
    add("--engine", run.engine);
    add("--mode", run.mode);
    add("--dir", run.map.directory);
    if (run.count_peers) arguments.emplace_back("--count-peers");
    if (!run.map.prefault) arguments.emplace_back("--no-prefault");
    if (!own.empty()) {
        arguments.insert(arguments.end(), own.begin(), own.end());
        return arguments;
    }
    add("--threads", std::to_string(run.threads));
    add("--ops", std::to_string(run.ops));
    if (const auto which = lock_based_named(run.name)) {
        add("--records", std::to_string(run.records));
        if (*which == lock_based::map) add("--value-bytes", std::to_string(run.map.value_bytes));
        if (!run.latency.empty()) add("--latency", run.latency);
        return arguments;
    }
    if (!sequence_named(run.name)) add("--batch", std::to_string(run.batch));
    if (!sequence_named(run.name) && run.map.which != structure::set)
        add("--value-bytes", std::to_string(run.map.value_bytes));
    if (run.name.starts_with("ycsb-")) add("--structure", std::string(name_of(run.map.which)));
    if (ycsb_mix(run.name)) {
        add("--records", std::to_string(run.records));
        add("--distribution", run.distribution);
    } else if (may_read(run)) {
        add("--read-percent", std::to_string(run.read_percent));
    }
    if (measures_container(run)) {
        add("--records", std::to_string(run.records));
        add("--durability", run.map.durable_on_return ? "return" : "next");
    } else if (!run.map.sections_on_return) {
        add("--durability", "next");
    }
    if (!run.latency.empty()) add("--latency", run.latency);
    if (!run.map.reserve) arguments.emplace_back("--grow");
    return arguments;
}

} // namespace

nlohmann::ordered_json compare(const compare_options& options, bool progress) {
    std::vector<std::vector<double>> speeds(options.engines.size());
    std::vector<std::vector<double>> cpu(options.engines.size());
    std::vector<nlohmann::ordered_json> last(options.engines.size());
    for (unsigned round = 0; round < options.rounds; ++round)
        for (std::size_t i = 0; i < options.engines.size(); ++i) {
            run_options run = options.each;
            run.engine = options.engines[i];
            if (progress)
                fmt::print(stderr, "\rround {}/{} {:<24}", round + 1, options.rounds, run.engine);
            const std::string text =
                output_of_self(arguments_for(run, options.own_arguments), environment_for(run));
            last[i] = nlohmann::ordered_json::parse(text);
            speeds[i].push_back(last[i]["ops_per_second"].get<double>());
            cpu[i].push_back(last[i]["cpu_ns_per_op"].get<double>());
        }
    if (progress) fmt::print(stderr, "\r{:<40}\r", "");

    nlohmann::ordered_json out;
    out["name"] = "compare " + options.each.name;
    out["rounds"] = options.rounds;
    out["runs"] = nlohmann::ordered_json::array();
    const double first = median(speeds.front());
    for (std::size_t i = 0; i < options.engines.size(); ++i) {
        nlohmann::ordered_json run = last[i];
        const double middle = median(speeds[i]);
        const auto [least, most] = std::minmax_element(speeds[i].begin(), speeds[i].end());
        run["ops_per_second"] = middle;
        run["ops_per_second_of_rounds"] = speeds[i];
        run["cpu_ns_per_op"] = median(cpu[i]);
        run["spread"] = (*most - *least) / middle;
        run["ratio_to_first"] = middle / first;
        out["runs"].push_back(run);
    }
    return out;
}

std::string table_of(const nlohmann::ordered_json& compared) {
    const auto& first = compared["runs"][0];
    std::string out =
        fmt::format("{} ({}): mode {}, {} thread(s), {} ops, {}-byte values, {} % reads, "
                    "{}{}\n{}; median of {} rounds, each in a fresh process on a fresh pool\n\n",
                    first["name"].get<std::string>(), first["structure"].get<std::string>(),
                    first["mode"].get<std::string>(), first["threads"].get<unsigned>(),
                    first["ops"].get<std::uint64_t>(), first["value_bytes"].get<unsigned>(),
                    first["read_percent"].get<unsigned>(), first["directory"].get<std::string>(),
                    first["emulated_pm"].get<bool>() ? " (emulated PM)" : "",
                    first["cpu"].get<std::string>(), compared["rounds"].get<unsigned>());
    out += fmt::format("{:<22}{:>12}{:>8}{:>8}{:>8}{:>9}{:>9}{:>9}{:>10}\n", "engine", "ops/s",
                       "ratio", "spread", "cpu ns", "fences", "flushes", "entries", "log bytes");
    const auto number = [](const nlohmann::ordered_json& value) {
        return value.is_null() ? std::string("-") : fmt::format("{:.2f}", value.get<double>());
    };
    for (const auto& run : compared["runs"])
        out += fmt::format("{:<22}{:>12.0f}{:>8.2f}{:>7.0f}%{:>8.0f}{:>9}{:>9}{:>9}{:>10}  {}\n",
                           run["engine"].get<std::string>(), run["ops_per_second"].get<double>(),
                           run["ratio_to_first"].get<double>(), 100 * run["spread"].get<double>(),
                           run["cpu_ns_per_op"].get<double>(), number(run["fences_per_op"]),
                           number(run["flushes_per_op"]), number(run["log_entries_per_op"]),
                           number(run["log_bytes_per_op"]), run["note"].get<std::string>());
    return out;
}

} // namespace hf::bench
