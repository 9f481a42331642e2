// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts instructions one at a time, by the processor's trap flag: exact, and the same on a busy
// machine. Each takes some microseconds. A string instruction of the processor counts once.
#pragma once

#include "sections_under_test.hpp"

namespace hf::bench {

/// Calls 'at_each' behind every instruction of a call, and of some around it; returns how many
/// those were. At most one thread at a time; 'at_each' runs in a signal's handler.
std::uint64_t step(section_call* section, section_object* of, void (*at_each)());

/// The instructions of a call, its return among them: the mean of so many calls.
double instructions_of(section_call* section, section_object* of, std::uint64_t calls);

} // namespace hf::bench
