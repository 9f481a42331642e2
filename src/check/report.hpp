// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The crash checker's output, for people and for programs.
#pragma once

#include <check/program.hpp>

#include <string>

namespace hf::crash {

/// check(); then, if there was a violation after several failures in a row, once more for the
/// places of what recovery did.
checked_program check_for_report(const std::string& name, program& given,
                                 const check_options& options);

/// The cause of a failure, in terms of the source.
struct blame {
    struct store {
        hf::check::code_place place;
        std::size_t offset, bytes;
        std::string fault, mend;  // sentences
        bool by_recovery = false; // else by the program
    };
    std::vector<store> guilty; // at least one, unless nothing was stored
    bool in_recovery = false;  // where the last failure came
};
/// Requires: 'run' is the run that the violation was found in.
blame find_blame(const hf::check::violation& v, const hf::check::event_record& run);

/// One line of numbers. After it, for each violation: the failure and its time, the events before
/// it, the guilty stores and their places, a cure, and the command that replays it. 'run': the run
/// explored last.
std::string for_people(const checked_program& checked, const hf::check::event_record& run,
                       const std::string& replay_command);
/// One JSON object.
std::string for_programs(const checked_program& checked, const hf::check::event_record& run);

/// One JSON object about a program that has not been run.
std::string listed_json(const std::string& name, unsigned threads);

/// A violation as --replay takes it: "17:0,2/5:1", failures in a row, each with the event it came
/// after and the choices made in the recovery that followed; with several threads after the
/// schedule of the run: "0,12,40@17:0,2/5:1". "17.2:": after two words of a store that fails in
/// parts. "k17:": the process was killed, and the power did not fail. "c120:", "m120:": what had
/// been recovered was closed before, at once or after more operations; "s120:": with a seal.
/// "0.1,12.2@": the first thread and the number of the ring, the switch and its steps.
std::string replay_text(const checked_program& checked, const hf::check::violation& v);
/// The failure that 'text' replays. Errors: 'failures' is empty if the text names no failure.
struct replay_asked {
    hf::check::schedule by;
    std::vector<hf::check::failure_point> failures;
};
replay_asked parse_replay(const std::string& text);

/// The build: the version, and the commit if it is known.
std::string built_from();

} // namespace hf::crash
