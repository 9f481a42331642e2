// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command.hpp"

#include "applications/applications.hpp"
#include "child.hpp"
#include "compare.hpp"
#include "containers/sequence_under_test.hpp"
#include "lock_based/lock_based_run.hpp"
#include "plain/plain.hpp"
#include "restart.hpp"
#include "run.hpp"
#include "section/section.hpp"
#include "simpo/many.hpp"
#include "simpo/simpo.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>

namespace hf::bench {
namespace {

constexpr std::uint64_t batch_max = std::uint64_t{1} << 32;

void add_run_options(CLI::App& to, run_options& options) {
    to.add_option("--mode", options.mode, "durability: process, pmem or power")
        ->check(CLI::IsMember({"process", "pmem", "power"}))
        ->capture_default_str();
    to.add_option("--threads", options.threads)->check(CLI::Range(1, 64))->capture_default_str();
    to.add_option("--ops", options.ops, "operations in all")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    to.add_option("--batch", options.batch, "operations that are acknowledged together")
        ->check(CLI::Range(std::uint64_t{1}, batch_max))
        ->capture_default_str();
    to.add_option("--dir", options.map.directory, "where pool files go")->capture_default_str();
    to.add_option("--latency", options.latency, "in mode pmem: fences as long as on other memory")
        ->check(CLI::IsMember({"optane", "cxl", "cxl-far"}));
    to.add_flag("--count-peers", options.count_peers,
                "count what libpmemobj flushes and fences, which slows it a little");
    to.add_flag("!--grow", options.map.reserve,
                "let our hash map grow while it is filled: the peers' have their buckets before");
    to.add_flag("!--no-prefault", options.map.prefault, "do not touch the files' pages first");
}

std::map<std::string, structure> structures_by_name() {
    std::map<std::string, structure> names;
    for (const structure each : all_structures()) names.emplace(name_of(each), each);
    return names;
}

void add_structure(CLI::App& to, structure& which) {
    std::set<std::string> names;
    for (const structure each : all_structures()) names.emplace(name_of(each));
    // A transformer of names to values would show the values, too, as characters.
    to.add_option_function<std::string>(
          "--structure", [&which](const auto& name) { which = structures_by_name().at(name); },
          "which of our structures")
        ->check(CLI::IsMember(names));
}

void add_value_bytes(CLI::App& to, run_options& options) {
    to.add_option("--value-bytes", options.map.value_bytes, "256 except in the hash map and in map")
        ->check(CLI::IsMember({32, 64, 256, 1024}))
        ->capture_default_str();
}
void add_records(CLI::App& to, run_options& options) {
    to.add_option("--records", options.records, "loaded before the clock starts")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
}

void add_durability(CLI::App& to, bool& on_return) {
    to.add_option_function<std::string>(
          "--durability", [&on_return](const std::string& when) { on_return = when == "return"; },
          "an update survives power loss when it returns, or (engines mod and undo; the others on "
          "return all the same) when the thread's next one does")
        ->check(CLI::IsMember({"next", "return"}))
        ->default_str(on_return ? "return" : "next");
}

// MOD's Table 2: 8-byte keys, 32-byte values, half lookups; 8-byte elements.
void add_container_options(CLI::App& to, run_options& options) {
    options.engine = "mod";
    options.distribution = "uniform";
    options.read_percent = sequence_named(options.name) ? 0 : 50;
    options.map.value_bytes = options.name == name_of(structure::map) ? 32 : 0;
    if (options.name == name_of(structure::map)) add_value_bytes(to, options);
    add_records(to, options);
    add_durability(to, options.map.durable_on_return);
}

// JUSTDO's options: 8-byte values, except for a map with other ones (its Fig. 11).
void add_lock_based_options(CLI::App& to, run_options& options, lock_based which) {
    options.engine = "justdo";
    options.records = records_by_default(which);
    options.map.value_bytes = sizeof(std::uint64_t);
    add_records(to, options);
    if (which != lock_based::map) return;
    to.add_option("--value-bytes", options.map.value_bytes)
        ->check(CLI::IsMember({1, 8, 64, 256, 1000}))
        ->capture_default_str();
}

// The options in which filling a structure, a container and a mix differ.
void add_named_options(CLI::App& to, run_options& options) {
    if (const auto which = lock_based_named(options.name)) {
        add_lock_based_options(to, options, *which);
        return;
    }
    const auto names = structures_by_name();
    const auto own = names.find(options.name);
    if (own != names.end()) options.map.which = own->second;
    if (measures_container(options)) add_container_options(to, options);
    else add_value_bytes(to, options);
    if (own != names.end() && !measures_container(options))
        add_durability(to, options.map.sections_on_return);
    if (may_read(options))
        to.add_option("--read-percent", options.read_percent, "share of operations that read")
            ->check(CLI::Range(0, 100))
            ->capture_default_str();
    if (own != names.end() || measures_container(options)) return;
    const auto mix = ycsb_mix(options.name);
    if (mix && mix->scan != 0) options.map.which = structure::bptree;
    add_structure(to, options.map.which);
    if (!mix) return;
    add_records(to, options);
    to.add_option("--distribution", options.distribution, "which records: zipfian or uniform")
        ->check(CLI::IsMember({"zipfian", "uniform"}))
        ->capture_default_str();
}

std::string description_of(const std::string& name) {
    if (const auto which = sequence_named(name)) {
        if (*which == sequence::vecswap) return "two elements of a vector change places";
        return *which == sequence::vector ? "set elements of a vector" : "half pushes, half pops";
    }
    if (const auto which = lock_based_named(name))
        return comes_and_goes(*which) ? "threads insert or remove, under locks inside"
                                      : "threads overwrite what is there, under locks inside";
    if (name == name_of(structure::map) || name == name_of(structure::set))
        return "half insertions, half lookups";
    const auto mix = ycsb_mix(name);
    if (!mix) return name == ycsb_load ? "fill a structure" : "fill this structure";
    std::string text;
    const auto add = [&](unsigned share, const char* what) {
        if (share != 0) text += fmt::format("{}{} % {}", text.empty() ? "" : ", ", share, what);
    };
    add(mix->read, mix->latest ? "read what is newest" : "read");
    add(mix->update, "update");
    add(mix->read_modify_write, "read-modify-write");
    add(mix->scan, "scan up to 100");
    add(100 - mix->read - mix->update - mix->read_modify_write - mix->scan, "insert");
    return text;
}

std::vector<std::string> engines_of(const std::string& name) {
    if (const auto which = sequence_named(name)) return engines_for(*which);
    if (const auto which = lock_based_named(name)) return engines_for(*which);
    const auto names = structures_by_name();
    const auto own = names.find(name);
    return engines_for(own == names.end() ? structure::hashmap : own->second);
}

std::string engine_names(const std::string& name) {
    std::string text;
    for (const std::string& each : engines_of(name)) text += (text.empty() ? "" : ", ") + each;
    return text;
}

void add_run(CLI::App& to, const std::string& name, char** arguments) {
    auto options = std::make_shared<run_options>();
    auto json = std::make_shared<bool>(false);
    options->name = name;
    CLI::App* command = to.add_subcommand(name, description_of(name));
    CLI::Option* engine = command->add_option("--engine", options->engine, engine_names(name));
    add_run_options(*command, *options);
    add_named_options(*command, *options);
    engine->capture_default_str();
    command->add_flag("--json", *json, "print one JSON object");
    command->callback([=] {
        become_with(environment_for(*options), arguments);
        fmt::print("{}\n", run(*options).dump(*json ? -1 : 2));
    });
}

void add_compare_of(CLI::App& to, const std::string& name) {
    auto options = std::make_shared<compare_options>();
    auto json = std::make_shared<bool>(false);
    options->each.name = name;
    CLI::App* command = to.add_subcommand(name, description_of(name));
    command->add_option("--engines", options->engines, "comma-separated; ratios are to the first")
        ->delimiter(',');
    command->add_option("--rounds", options->rounds)
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    add_run_options(*command, options->each);
    add_named_options(*command, options->each);
    if (measures_container(options->each)) options->engines = {"mod", "pmdk"};
    if (lock_based_named(name)) options->engines = {"none", "undo", "redo", "justdo", "ido"};
    command->add_flag("--json", *json, "print one JSON object instead of a table");
    command->callback([=] {
        const nlohmann::ordered_json result = compare(*options, !*json);
        fmt::print("{}\n", *json ? result.dump() : table_of(result));
    });
}

void add_compare(CLI::App& to) {
    CLI::App* command = to.add_subcommand("compare", "engines and peers in interleaved rounds");
    command->require_subcommand(1);
    for (const std::string& name : run_names()) add_compare_of(*command, name);
    add_application_comparisons(*command);
}

void add_restart(CLI::App& to, char** arguments) {
    auto options = std::make_shared<restart_options>();
    auto items =
        std::make_shared<std::vector<std::uint64_t>>(std::vector<std::uint64_t>{1000000, 4000000});
    CLI::App* command = to.add_subcommand("restart", "kill a process that inserts, reopen, check");
    command->add_option("--engine", options->engine, "undo, clobber, pmdk …")
        ->capture_default_str();
    command->add_option("--mode", options->mode)
        ->check(CLI::IsMember({"process", "pmem", "power"}))
        ->capture_default_str();
    command->add_option("--batch", options->batch, "insertions that are acknowledged together")
        ->check(CLI::Range(std::uint64_t{1}, batch_max))
        ->capture_default_str();
    add_structure(*command, options->which);
    command
        ->add_option("--items", *items, "items before the first kill; may be given several times")
        ->capture_default_str();
    command->add_option("--threads", options->threads)
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("--kills", options->kills)
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--seed", options->seed, "of the moments to kill")->capture_default_str();
    command->add_option("--dir", options->directory)->capture_default_str();
    command->add_flag("--json")->description("as it does anyway");
    command->callback([=] {
        run_options same;
        same.engine = options->engine;
        same.mode = options->mode;
        become_with(environment_for(same), arguments);
        for (const std::uint64_t count : *items) {
            restart_options one = *options;
            one.items = count;
            fmt::print("{}\n", run_restart(one).dump());
        }
    });
}

} // namespace

void add_command(CLI::App& app, char** arguments) {
    CLI::App* bench = app.add_subcommand("bench", "measure engines and peers");
    bench->require_subcommand(1);
    for (const std::string& name : run_names()) add_run(*bench, name, arguments);
    add_applications(*bench, arguments);
    add_persistent_objects(*bench);
    add_many_objects(*bench);
    add_compare(*bench);
    add_restart(*bench, arguments);
    plain::add_plain(*bench, arguments);
    add_section(*bench, arguments);
}

} // namespace hf::bench
