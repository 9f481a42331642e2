// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs a workload in a child, kills it at a moment drawn from the seed, sometimes kills the
// recovery too, and lets a fresh child check what is left. Over and over.
#pragma once

#include "workload.hpp"

#include <cstdint>
#include <string>

namespace kill_test {

struct plan {
    workload* what;
    hf::mode mode = hf::mode::process;
    std::uint64_t seed = 1;
    unsigned threads = 0;     // 0: 1, 2, 4 and 8 in turn, pool by pool
    std::uint64_t kills = 50; // of running workloads; 0: until 'seconds' have passed
    double seconds = 0;
    double every_ms =
        0; // that long after the threads have begun, each kill; 0: at moments drawn from the seed
    std::uint64_t records = 0; // there before the run; no thread changes them
    std::string directory = "/dev/shm";
};

struct outcome {
    std::uint64_t kills = 0, recovery_kills = 0, acknowledged = 0, lost = 0, failures = 0;
    std::uint64_t pending = 0, re_executed = 0, resumed = 0, rolled_back = 0, discarded = 0,
                  pools = 0;

    outcome& operator+=(const outcome& other);
};

/// Stops at the first kill after which a claim does not hold: prints which, leaves the pool's file
/// and a copy of it as the kill left it, and prints the command that repeats the run.
outcome run(const plan& plan);

/// The bank, killed between debit and credit on purpose; prints and returns the failures.
std::uint64_t kill_between_debit_and_credit(const plan& plan);

/// The engine that this program's workloads were built for.
const char* engine_name();
/// Whether its workloads are sections, which an engine completes or rolls back.
bool has_sections();

} // namespace kill_test
