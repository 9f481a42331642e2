// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of one benchmark in this process: T threads do N operations; operations per second and,
// where they are counted, persistence events per operation.
#pragma once

#include "map_under_test.hpp"
#include "mix.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace hf::bench {

/// The mixes' loading as a benchmark: fills the structure that an option names.
constexpr std::string_view ycsb_load = "ycsb-load";

struct measured;

struct run_options {
    std::string name = "hashmap"; // a structure or a sequence, or ycsb-load, ycsb-a …
    std::string engine = "clobber";
    std::string mode = "process";
    std::string distribution = "zipfian"; // of the mixes; ycsb-d has its own
    std::uint64_t ops = 1000000;
    std::uint64_t records = 1000000; // loaded before the mixes and in containers
    unsigned threads = 1;
    std::uint64_t batch = 1;   // operations that become durable together, where that is dear
    std::string latency;       // "": this machine's; optane, cxl, cxl-far (latency.hpp)
    bool count_peers = false;  // libpmem's flushes and fences, too
    unsigned read_percent = 0; // when a structure is filled: share that reads what is there
    map_options map;
};

/// Whether the benchmark is one of a container, which holds records when the clock starts.
bool measures_container(const run_options& options);

/// Whether a share of the operations may read: run_options::read_percent.
bool may_read(const run_options& options);

/// Names of all benchmarks of run().
std::vector<std::string> run_names();

/// The object has the fields that docs/internals/design.md fixes, and the machine's facts.
nlohmann::ordered_json run(const run_options& options);

/// Sets the latency model that the options ask for.
void install_latency(const run_options& options);

/// The case, its speed and its counts: the beginning of every run's object.
nlohmann::ordered_json speed_of(const run_options& options, const measured& result,
                                const map_facts& facts);

/// Where, on what and with which durability it ran: the end of every run's object.
void add_machine(nlohmann::ordered_json& out, const run_options& options, const map_facts& facts);

/// The environment that the libraries of some peers need when the program starts.
std::vector<std::pair<std::string, std::string>> environment_for(const run_options& options);

/// The mode of this name.
hf::mode mode_named(std::string_view name);

/// The processor's name, as the kernel gives it.
std::string cpu_name();

} // namespace hf::bench
