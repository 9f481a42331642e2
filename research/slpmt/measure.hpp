// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One cell of the study: a workload's insertions on a machine, and what they took.
#pragma once

#include <slpmt/workloads/workload.hpp>

namespace hf::slpmt {

struct measured_case {
    std::string_view workload;
    technique how = slpmt;
    sim::parameters parts{};
    std::uint64_t insertions = 1000;
    std::uint64_t value_bytes = 256;
    std::uint64_t seed = 1;
    /// Instructions of the caller's own after each insertion: making keys and values, for instance.
    std::uint64_t instructions_between = 0;
    /// Operands of annotated sites by name, where they are not to be those by hand.
    std::vector<std::pair<std::string, operands>> annotations{};
};

struct measured {
    double ns = 0; // simulated, from the first insertion's begin to the last one's commit
    std::uint64_t pm_lines =
        0; // written to persistent memory, what was left lazy at the end included
    std::uint64_t accesses = 0; // loads and stores
    std::uint64_t lazy_at_risk_max =
        0; // committed lines that a crash between two insertions would lose
    double lazy_at_risk_mean = 0;
    std::uint32_t wear_max = 0; // writes of the line that was written most
    machine::counts counts;
    sim::hierarchy::counts caches;
    std::vector<site> sites;
};

measured measure(const measured_case& what);

/// The case's work on any machine: no technique changes which words a program reaches.
recorded record(const measured_case& what);
/// The same figures as measure() of the case that was recorded, with this technique on this
/// machine. There are no sites in it. Requires: one core.
measured replay(const recorded& what, const technique& how, const sim::parameters& parts);

} // namespace hf::slpmt
