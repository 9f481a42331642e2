// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs one crash program under the explorer: its pool lives in memory at its canonical address, is
// opened, used and closed there, and failed at every event of all three.
//
// What counts as right after a failure (durable linearizability):
//   - recovery succeeds;
//   - the state is one that the acknowledged operations leave, or those and some of the pending
//     ones, in an order that threads could have seen; the reference runs say which states these
//     are; the last operation of a thread may be missing if it is buffered;
//   - the program's own invariants hold, every object it reaches is an allocated block, and every
//     allocated block is reached;
//   - a state once recovered to stays, whatever fails next.
#pragma once

#include <check/explorer.hpp>
#include <check/schedule.hpp>

#include <holdfast/author/crash.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hf::crash {

struct checked_program {
    std::string name;
    hf::check::exploration found;
    unsigned depth_complete = 0;       // so many failures in a row were explored completely
    std::uint64_t schedules = 0;       // of several threads; 1 with one
    hf::check::schedule last_schedule; // by which the violation was found
    bool choices_left_out = false;     // of the next thread while one of three waits
    std::vector<hf::check::code_place> redundant_flushes; // of lines with nothing unflushed
    std::vector<hf::check::code_place> redundant_fences;  // with nothing to wait for
    std::vector<std::string> trouble; // what kept the program from being explored
    bool passed() const { return trouble.empty() && found.violations.empty(); }
};

struct check_options {
    hf::check::explore_options explore;
    std::optional<hf::mode> mode;  // in place of each program's own
    unsigned preemptions = 2;      // of a thread that could have gone on, at most
    unsigned schedules_random = 0; // further schedules, by random priorities
    std::uint64_t seed = 1;
    bool closes = false;        // recovered pools are closed, and then the power fails
    unsigned close_one_in = 64; // of recoveries from the most failures in a row
    std::vector<hf::check::failure_point> replay; // only this …
    hf::check::schedule replay_schedule;          // … of a run by this schedule
};

/// Errors: none; the result reports failures.
checked_program check(const std::string& name, program& given, const check_options& options);

/// Every program made known, by name.
std::map<std::string, std::unique_ptr<program>>& programs();

} // namespace hf::crash
