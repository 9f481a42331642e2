// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Several engines in one run: interleaved rounds, every measurement in a fresh process on a fresh
// pool, so that drift of the machine meets all of them alike.
#pragma once

#include "run.hpp"

#include <string>
#include <vector>

namespace hf::bench {

struct compare_options {
    std::vector<std::string> engines{"clobber", "pmdk"}; // the first is the base of ratios
    unsigned rounds = 5;
    run_options each;                       // engine is replaced
    std::vector<std::string> own_arguments; // of applications, instead of what structures want
};

/// Medians, spread ((max - min) / median) and ratio to the first engine; the processor time of an
/// operation as well, which other programs on the machine disturb less. 'progress': says on
/// standard error what runs.
nlohmann::ordered_json compare(const compare_options& options, bool progress);

/// The same as a table for people.
std::string table_of(const nlohmann::ordered_json& compared);

} // namespace hf::bench
