// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options that a pool's engine clobber was given with, and how long its recovery took.
#pragma once

#include <open/pool_impl.hpp>

#include <holdfast/clobber.hpp>

#include <atomic>

namespace hf::clobber {

/// Requires: the pool was opened with the engine.
const options& options_of(const pool::impl& pool) noexcept;

/// Time that this process's recoveries have taken, summed over sections and the threads that
/// recover them: inputs put back, functions executed again. For benchmarks.
struct recovery_time {
    std::atomic<std::int64_t> restore_ns{0}, re_execute_ns{0};
};
inline recovery_time recovery_took;

} // namespace hf::clobber
