// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One subject of one build, run and compared with its model.
#pragma once

#include "subject.hpp"

#include <holdfast/author/persist.hpp>
#include <holdfast/pool.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hf::bench::plain {

struct run_options {
    hf::mode mode = hf::mode::pmem;
    std::string directory = "/dev/shm";
    std::uint64_t records = 10000; // there before the clock starts
    std::uint64_t ops = 20000;     // of each row
    std::uint64_t batch = 1000;    // so many insertions, then as many erasures
};

/// A kind of operation: all of one run.
struct row {
    std::string name;
    std::uint64_t sections = 0;
    double seconds = 0;
    persist::counters events{};
};
struct ran {
    std::vector<row> rows;  // insertions and, where there are any, erasures
    row before;             // what was put in before the clock started
    std::string difference; // from the model; empty if equal
};

/// none, by-hand, floor-1f, floor-2f, pmdk, undo, undo-next, clobber, redo. The hand-written one is
/// for mode process.
std::vector<std::string> builds(hf::mode mode);
/// The corpus. Builds are asked for a subject by its name.
std::vector<subject> corpus();
/// Whether the build has it: pmdk has one of them.
bool has(std::string_view build, const subject& one);
/// Requires: the build has it; no pool is open.
ran run(std::string_view build, const subject& one, const run_options& options);

} // namespace hf::bench::plain
