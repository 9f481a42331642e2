// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When a thread that waits for a lock in a pool says so.
#pragma once

#include <atomic>

namespace hf {

/// A thread that has waited so long for one lock gives a line to the log, once: where it waits, and
/// whether a writer or readers have it. Tests change it.
extern constinit std::atomic<unsigned> lock_wait_ms_max;

} // namespace hf
