// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "command.hpp"

#include "child.hpp"
#include "compare.hpp"
#include "hashmap.hpp"
#include "restart.hpp"

#include <fmt/format.h>

#include <memory>

namespace hf::bench {
namespace {

void add_hashmap_options(CLI::App& to, hashmap_options& options) {
    to.add_option("--mode", options.mode, "durability: process or pmem")
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    to.add_option("--threads", options.threads)->check(CLI::Range(1, 64))->capture_default_str();
    to.add_option("--ops", options.ops, "operations in all")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    to.add_option("--value-bytes", options.map.value_bytes)
        ->check(CLI::IsMember({64, 256, 1024}))
        ->capture_default_str();
    to.add_option("--read-percent", options.read_percent, "share of operations that read")
        ->check(CLI::Range(0, 100))
        ->capture_default_str();
    to.add_option("--dir", options.map.directory, "where pool files go")->capture_default_str();
    to.add_flag("--reserve", options.map.reserve, "grow the map before the clock starts");
    to.add_flag("!--no-prefault", options.map.prefault, "do not touch the files' pages first");
}

void complete(hashmap_options& options) {
    options.map.mode = options.mode == "pmem" ? hf::mode::pmem : hf::mode::process;
    options.map.keys = options.ops;
    options.map.threads = options.threads;
}

void add_hashmap(CLI::App& to, char** arguments) {
    auto options = std::make_shared<hashmap_options>();
    auto json = std::make_shared<bool>(false);
    CLI::App* command = to.add_subcommand("hashmap", "insert into (and read from) a hash map");
    command
        ->add_option(
            "--engine", options->engine,
            "none, undo, clobber, pmdk, pmdk-actions, lmdb, lmdb-writemap-nosync, floor-2f "
            "or volatile")
        ->capture_default_str();
    add_hashmap_options(*command, *options);
    command->add_flag("--json", *json, "print one JSON object");
    command->callback([=] {
        become_with(environment_for(options->engine, options->mode), arguments);
        complete(*options);
        const nlohmann::ordered_json result = run_hashmap(*options);
        if (*json) fmt::print("{}\n", result.dump());
        else fmt::print("{}\n", result.dump(2));
    });
}

void add_compare(CLI::App& to) {
    auto options = std::make_shared<compare_options>();
    auto json = std::make_shared<bool>(false);
    CLI::App* command = to.add_subcommand("compare", "engines and peers in interleaved rounds");
    command->require_subcommand(1);
    CLI::App* hashmap = command->add_subcommand("hashmap", "the hash-map benchmark");
    hashmap->add_option("--engines", options->engines, "comma-separated; ratios are to the first")
        ->delimiter(',');
    hashmap->add_option("--rounds", options->rounds)
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    add_hashmap_options(*hashmap, options->each);
    hashmap->add_flag("--json", *json, "print one JSON object instead of a table");
    hashmap->callback([=] {
        const nlohmann::ordered_json result = compare_hashmap(*options, !*json);
        fmt::print("{}\n", *json ? result.dump() : table_of(result));
    });
}

void add_restart(CLI::App& to) {
    auto options = std::make_shared<restart_options>();
    auto items =
        std::make_shared<std::vector<std::uint64_t>>(std::vector<std::uint64_t>{1000000, 4000000});
    CLI::App* command = to.add_subcommand("restart", "kill a process that inserts, reopen, check");
    command->add_option("--engine", options->engine)
        ->check(CLI::IsMember({"undo", "clobber"}))
        ->capture_default_str();
    command->add_option("--mode", options->mode)
        ->check(CLI::IsMember({"process", "pmem"}))
        ->capture_default_str();
    command
        ->add_option("--items", *items, "items before the first kill; may be given several times")
        ->capture_default_str();
    command->add_option("--threads", options->threads)
        ->check(CLI::Range(1, 64))
        ->capture_default_str();
    command->add_option("--kills", options->kills)
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command->add_option("--dir", options->directory)->capture_default_str();
    command->callback([=] {
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
    add_hashmap(*bench, arguments);
    add_compare(*bench);
    add_restart(*bench);
}

} // namespace hf::bench
