// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the benchmarks of persistent objects have in common: options, the pool, the report.
#pragma once

#include "../measured.hpp"

#include <holdfast/pool.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hf::bench {

struct object_settings {
    std::string name, engine = "simpo", mode = "process", directory = "/dev/shm";
    unsigned threads = 1;
    std::uint64_t ops = 1'000; // calls in all
    bool json = false;         // on one line
};

/// Adds `bench NAME`, with its options.
CLI::App& add_object_bench(CLI::App& bench, const char* what, object_settings& to,
                           const std::vector<std::string>& engines);

/// For a pool that nobody opens again.
open_options pool_for(const object_settings& how, std::string layout, std::uint64_t create_bytes);

/// The head of a report.
nlohmann::ordered_json report_of(const object_settings& how, const measured& run, bool emulated);

void print(const object_settings& how, const nlohmann::ordered_json& report);

} // namespace hf::bench
