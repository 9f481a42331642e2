// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of one benchmark in this process: T threads do N operations; operations per second and,
// where the map counts them, persistence events per operation.
#pragma once

#include "map_under_test.hpp"
#include "mix.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace hf::bench {

/// The mixes' loading as a benchmark: fills the structure that it is told.
constexpr std::string_view ycsb_load = "ycsb-load";

struct run_options {
    std::string name = "hashmap"; // a structure, which is filled, or ycsb-load, ycsb-a …
    std::string engine = "clobber";
    std::string mode = "process";
    std::string distribution = "zipfian"; // of the mixes; ycsb-d has its own
    std::uint64_t ops = 1000000;
    std::uint64_t records = 1000000; // loaded before the mixes
    unsigned threads = 1;
    std::string latency;       // "": this machine's; optane, cxl, cxl-far (latency.hpp)
    bool count_peers = false;  // libpmem's flushes and fences, too
    unsigned read_percent = 0; // when a structure is filled: share that reads what is there
    map_options map;
};

/// Names of all benchmarks that run() knows.
std::vector<std::string> run_names();

/// The object has the fields that DESIGN §7 fixes, and the machine's facts.
nlohmann::ordered_json run(const run_options& options);

/// What must be in the environment when the program starts, for the libraries of some peers.
std::vector<std::pair<std::string, std::string>> environment_for(const run_options& options);

/// The processor's name, as the kernel gives it.
std::string cpu_name();

} // namespace hf::bench
