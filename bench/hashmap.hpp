// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The hash-map benchmark: T threads insert (and read) N keys; operations per second and, where the
// map counts them, persistence events per operation.
#pragma once

#include "map_under_test.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace hf::bench {

struct hashmap_options {
    std::string engine = "clobber";
    std::string mode = "process";
    std::uint64_t ops = 1000000;
    unsigned threads = 1;
    unsigned read_percent = 0;
    map_options map;
};

/// Runs once in this process. The object has the fields that DESIGN §7 fixes, and the machine's
/// facts.
nlohmann::ordered_json run_hashmap(const hashmap_options& options);

/// What libpmemobj must find in the environment when it is loaded, for an engine and a mode.
std::vector<std::pair<std::string, std::string>> environment_for(std::string_view engine,
                                                                 std::string_view mode);

/// The processor's name, as the kernel gives it.
std::string cpu_name();

} // namespace hf::bench
