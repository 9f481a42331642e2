// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs code that may die: signals, broken contracts and runs without end become a sentence.
#pragma once

#include <functional>
#include <string>

namespace hf::check {

/// Runs 'body' on this thread. Returns an empty text if it returned; else how it ended ("died:
/// SIGSEGV at 0x8"). What it held when it died stays held, so after a death no further run is worth
/// making.
///
/// Threads: one at a time in a process; takes over the handlers of the fatal signals and SIGALRM.
std::string run_guarded(double seconds_max, const std::function<void()>& body);

/// While code runs guarded, calls this every few hundredths of a second from the handler of
/// SIGALRM, on any thread; null: nothing.
void at_every_tick(void (*call)(void*), void* context) noexcept;

} // namespace hf::check
