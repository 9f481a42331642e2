// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The instructions that persist.cpp needs, of the processor that it is compiled for.
//
//   write_back, detected()      how lines are written back, by the best instruction that is there
//   write_back_lines(how, …)    starts the write-back of the lines from 'first' to before 'end'. What
//                               the thread stored to a line earlier goes with the line
//   copy_past_caches(…)         stores words so that wait_for_stores() makes them durable
//   wait_for_stores()           returns when the thread's write-backs, its copies and its stores are
//                               done. Later stores come after them
//   ticks(), pause()            the processor's clock; for loops that wait
#pragma once

#if defined(__x86_64__)
#include <persist/processor_x86_64.hpp>
#elif defined(__aarch64__)
#include <persist/processor_arm64.hpp>
#else
#error "Holdfast knows the processors x86-64 and ARM64"
#endif
