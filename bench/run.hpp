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

struct run_options {
    std::string name = "hashmap"; // a structure, which is then filled, or a mix, ycsb-a …
    std::string engine = "clobber";
    std::string mode = "process";
    std::string distribution = "zipfian"; // of the mixes; ycsb-d has its own
    std::uint64_t ops = 1000000;
    std::uint64_t records = 1000000; // loaded before the mixes
    unsigned threads = 1;
    unsigned read_percent = 0; // when a structure is filled: share that reads what is there
    map_options map;
};

/// Names of all benchmarks that run() knows.
std::vector<std::string> run_names();

/// The object has the fields that DESIGN §7 fixes, and the machine's facts.
nlohmann::ordered_json run(const run_options& options);

/// What libpmemobj must find in the environment when it is loaded, for an engine and a mode.
std::vector<std::pair<std::string, std::string>> environment_for(std::string_view engine,
                                                                 std::string_view mode);

/// The processor's name, as the kernel gives it.
std::string cpu_name();

} // namespace hf::bench
