// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "applications.hpp"

#include "../child.hpp"
#include "../compare.hpp"
#include "../measured.hpp"
#include "../peers/libpmem_events.hpp"
#include "../temporary_file.hpp"

#include <holdfast/author/persist.hpp>

#include <fmt/format.h>
#include <research/bfs/search.hpp>
#include <research/vacation/agency.hpp>

#include <memory>

namespace hf::bench {
namespace {

namespace bfs = apps::bfs;
namespace vacation = apps::vacation;
using nlohmann::ordered_json;

struct application_options {
    run_options run; // of it: name, engine, mode, ops, directory, prefault, count_peers
    bfs::graph_description graph;
    vacation::agency_options agency;
};

// The measured case, as every run's object describes it.
ordered_json described(const application_options& options, std::uint64_t ops,
                       const measured& result) {
    const run_options& run = options.run;
    const bool is_volatile = run.engine == "volatile";
    map_facts facts;
    facts.emulated_pm = run.mode == "pmem" && !is_volatile;
    facts.counts_events = run.engine == "mod" || (run.engine == "pmdk" && libpmem_is_counted());
    facts.note = is_volatile ? "nothing survives" : "";
    ordered_json out;
    out["name"] = run.name;
    out["engine"] = run.engine;
    out["mode"] = run.mode;
    out["threads"] = 1;
    out["ops"] = ops;
    out["ops_per_second"] = static_cast<double>(ops) / result.seconds;
    out["seconds"] = result.seconds;
    add_counts(out, result, ops, facts);
    out["structure"] = run.name == "bfs" ? "queue" : "4 maps";
    out["value_bytes"] = run.name == "bfs" ? sizeof(std::uint64_t) : sizeof(vacation::offer);
    out["read_percent"] = 0;
    add_machine(out, run, facts);
    return out;
}

// The operations are the queue's: a push and a pop of each node that is reached.
ordered_json run_bfs(const application_options& options, const std::string& path) {
    const bfs::graph searched(options.graph);
    const run_options& run = options.run;
    const auto state =
        bfs::open_state({run.engine, path, run.mode == "pmem", run.map.prefault}, options.graph);
    if (!state) give_up(state.error().what());
    bfs::search_result found;
    const measured result = measure_threads(1, [&](unsigned) {
        auto searched_all = bfs::search(searched, **state);
        if (searched_all) found = *searched_all;
        return static_cast<bool>(searched_all);
    });
    ordered_json out = described(options, found.pushed + found.popped, result);
    out["nodes"] = options.graph.nodes;
    out["edges"] = options.graph.edges;
    out["reached"] = found.reached;
    out["checksum"] = found.checksum;
    return out;
}

ordered_json run_vacation(const application_options& options, const std::string& path) {
    const run_options& run = options.run;
    const auto books = vacation::open_tables(
        {run.engine, path, run.mode == "pmem", run.map.prefault, options.agency.relations});
    if (!books) give_up(books.error().what());
    vacation::agency office(**books, options.agency);
    if (const status done = office.open_for_business(); !done.ok()) give_up(done.what());
    const measured result = measure_threads(1, [&](unsigned) {
        for (std::uint64_t t = 0; t < run.ops; ++t)
            if (!office.request(t).ok()) return false;
        return true;
    });
    const vacation::agency::report seen = office.look();
    if (!seen.wrong.empty()) give_up("the books do not balance: " + seen.wrong);
    ordered_json out = described(options, run.ops, result);
    out["relations"] = options.agency.relations;
    out["queries"] = options.agency.queries;
    out["query_percent"] = options.agency.query_percent;
    out["user_percent"] = options.agency.user_percent;
    out["digest"] = seen.digest;
    return out;
}

ordered_json run_application(const application_options& options) {
    const temporary_file file(options.run.map.directory, options.run.name);
    return options.run.name == "bfs" ? run_bfs(options, file.path())
                                     : run_vacation(options, file.path());
}

void add_common(CLI::App& to, run_options& run) {
    to.add_option("--mode", run.mode, "durability: process or pmem")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    to.add_option("--dir", run.map.directory, "where pool files go")->capture_default_str();
    to.add_flag("--count-peers", run.count_peers,
                "count what libpmemobj flushes and fences, which slows it a little");
    to.add_flag("!--no-prefault", run.map.prefault, "do not touch the files' pages first");
}

void add_own(CLI::App& to, application_options& options) {
    if (options.run.name == "bfs") {
        to.add_option("--nodes", options.graph.nodes, "of the graph")
            ->check(CLI::Range(1U, 1U << 30))
            ->capture_default_str();
        to.add_option("--edges", options.graph.edges)
            ->check(CLI::Range(0U, 1U << 30))
            ->capture_default_str();
        to.add_option("--seed", options.graph.seed)->capture_default_str();
        return;
    }
    to.add_option("--ops", options.run.ops, "requests")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    to.add_option("--relations", options.agency.relations, "rows of each map in the beginning")
        ->check(CLI::Range(1U, 1U << 24))
        ->capture_default_str();
    to.add_option("--queries", options.agency.queries, "offers that a request looks at, at most")
        ->check(CLI::Range(1U, 1000U))
        ->capture_default_str();
    to.add_option("--query-percent", options.agency.query_percent, "share of the rows asked for")
        ->check(CLI::Range(1U, 100U))
        ->capture_default_str();
    to.add_option("--user-percent", options.agency.user_percent, "share of requests that reserve")
        ->check(CLI::Range(0U, 100U))
        ->capture_default_str();
    to.add_option("--seed", options.agency.seed)->capture_default_str();
}

// The same as add_own, for the runs that compare starts.
std::vector<std::string> own_arguments(const application_options& options) {
    std::vector<std::string> all;
    const auto add = [&](const char* option, std::uint64_t value) {
        all.emplace_back(option);
        all.push_back(std::to_string(value));
    };
    if (options.run.name == "bfs") {
        add("--nodes", options.graph.nodes);
        add("--edges", options.graph.edges);
        add("--seed", options.graph.seed);
        return all;
    }
    add("--ops", options.run.ops);
    add("--relations", options.agency.relations);
    add("--queries", options.agency.queries);
    add("--query-percent", options.agency.query_percent);
    add("--user-percent", options.agency.user_percent);
    add("--seed", options.agency.seed);
    return all;
}

struct named {
    const char* name;
    const char* description;
};
constexpr named applications[] = {
    {"bfs", "search a graph breadth-first with a durable queue"},
    {"vacation", "serve a travel agency's clients over four durable maps"}};

} // namespace

void add_applications(CLI::App& bench, char** arguments) {
    for (const named& one : applications) {
        auto options = std::make_shared<application_options>();
        auto json = std::make_shared<bool>(false);
        options->run.name = one.name;
        options->run.engine = "mod";
        CLI::App* command = bench.add_subcommand(one.name, one.description);
        command->add_option("--engine", options->run.engine, "mod, pmdk, volatile")
            ->capture_default_str();
        add_common(*command, options->run);
        add_own(*command, *options);
        command->add_flag("--json", *json, "print one JSON object");
        command->callback([=] {
            become_with(environment_for(options->run), arguments);
            fmt::print("{}\n", run_application(*options).dump(*json ? -1 : 2));
        });
    }
}

void add_application_comparisons(CLI::App& compare_command) {
    for (const named& one : applications) {
        auto options = std::make_shared<application_options>();
        auto comparison = std::make_shared<compare_options>();
        auto json = std::make_shared<bool>(false);
        options->run.name = one.name;
        comparison->engines = {"pmdk", "mod"};
        CLI::App* command = compare_command.add_subcommand(one.name, one.description);
        command
            ->add_option("--engines", comparison->engines,
                         "comma-separated; ratios are to the first")
            ->delimiter(',')
            ->capture_default_str();
        command->add_option("--rounds", comparison->rounds)
            ->check(CLI::Range(1, 1000))
            ->capture_default_str();
        add_common(*command, options->run);
        add_own(*command, *options);
        command->add_flag("--json", *json, "print one JSON object instead of a table");
        command->callback([=] {
            comparison->each = options->run;
            comparison->own_arguments = own_arguments(*options);
            const ordered_json result = compare(*comparison, !*json);
            fmt::print("{}\n", *json ? result.dump() : table_of(result));
        });
    }
}

} // namespace hf::bench
