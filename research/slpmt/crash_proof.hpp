// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Crashes the simulated machine wherever persistent memory changes: after each acceptance by the
// write queue the durable image is recovered and compared with what had been committed.
//
// Every image has to pass:
// (1) The resolved transactions are the acknowledged ones, or one more.
// (2) The image contains the insertions of the transactions resolved, whole, and nothing else.
// (3) A recovery that is cut short after any of its writes and done again ends with the same
//     contents.
// (4) A machine that starts on the recovered image goes on, is crashed at every acceptance of its
//     own, and passes (1) and (2).
#pragma once

#include <slpmt/recovery.hpp>
#include <slpmt/workloads/workload.hpp>

#include <string>
#include <vector>

namespace hf::slpmt {

/// The object of a proof. If caches are small, lines leave them in mid-transaction.
struct proof_case {
    std::string_view workload;
    technique how = slpmt;
    sim::parameters parts{};
    std::uint64_t insertions = 60;
    std::uint64_t value_bytes = 32;
    std::uint64_t seed = 1;
    std::uint64_t interrupt_every = 1; // (3) at one crash point of so many; 0: never
    std::uint64_t continue_every = 16; // (4)
    bool stop_at_first = false;
    /// Annotations to be tried instead of those by hand: name of a site and its operands.
    std::vector<std::pair<std::string_view, operands>> annotations{};
};

struct proof {
    std::uint64_t points = 0;      // crashes of the machine
    std::uint64_t interrupted = 0; // crashes of a recovery
    std::uint64_t continued = 0;   // crashes of a machine that had been recovered
    std::uint64_t violations = 0;
    std::string first; // what the first violation is: insertion, acceptance and finding
};

proof prove(const proof_case& what);

/// For a case with violations: each annotated store without whose annotation there is no violation,
/// as "FILE:LINE: store 'NAME' is LAZY, LOG-FREE"; empty: no single one causes it.
std::vector<std::string> blame(const proof_case& what);

/// The caches that proofs use: a few lines each, so that everything leaves them.
sim::parameters small_caches();
/// Key number i of a seed.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t i);

} // namespace hf::slpmt
