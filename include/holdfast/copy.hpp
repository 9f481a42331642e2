// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pool::copy_to: a copy of an open pool, for a backup, a test or another machine. `holdfast copy
// POOL TO` makes the same copy from outside, beside a running program.
#pragma once

#include <cstdint>

namespace hf {

struct copy_options {
    /// The copying thread calls it now and then, while no thread is stopped.
    void (*progress)(void* context, std::uint64_t done_bytes, std::uint64_t total_bytes) = nullptr;
    void* context = nullptr;
};

struct copy_report {
    std::uint64_t bytes = 0; // of the copy's file
    /// A process had the pool open, and all of its threads stood still for pause_ms.
    bool in_use = false;
    double pause_ms = 0;
    std::uint64_t bytes_in_pause = 0; // that had changed since they were first copied
};

} // namespace hf
