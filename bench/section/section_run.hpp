// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One engine's sections, measured in this process: so many calls of each, one after the other, by
// one thread; then by two at once, each on an object of its own.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hf::bench {

struct section_options {
    std::string engine = "by-hand";
    std::string mode = "process";
    std::string directory = "/dev/shm";
    std::uint64_t ops = 200000; // calls of each case, but where they are long
    bool prefault = true;
    bool instructions = false; // count them as well
};

/// The names of the measured cases, in the order of tables.
std::vector<std::string> section_cases();

/// For each case "ns", the processor's time of a call; "fences", a call's where they are counted;
/// "instructions", a call's if the options ask for them and one thread calls. Ends the process when
/// the memory is not what plain code makes of it.
nlohmann::ordered_json run_sections(const section_options& options);

} // namespace hf::bench
