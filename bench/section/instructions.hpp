// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts instructions one at a time, by the processor's trap flag: exact, and the same on a busy machine. Each takes
// some microseconds. A string instruction of the processor counts once.
#pragma once

#include "sections_under_test.hpp"

namespace hf::bench {

/// The instructions of a call, its return among them: the mean of so many calls.
double instructions_of(section_call* section, section_object* of, std::uint64_t calls);

} // namespace hf::bench
