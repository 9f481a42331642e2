// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber-NVM: a section logs its arguments and the inputs that it overwrites. After a crash
// recovery puts those inputs back and re-executes the function to completion (Clobber §3-4).
//
// Ordering: before the commit one for each clobber write, at least 1; fewer where the compiler
//           makes entries together, ahead of their stores. 1 at the commit, 1 more once several threads
//           have begun sections. 0 in mode process.
// Crash:    re-executed, by the build that has the function in the same version.
// Source:   Clobber §3-4. Differs: src/clobber/README.md.
#pragma once

#include <holdfast/options.hpp>

#include <cstdint>

namespace hf::clobber {

struct options {
    /// Also logs the old bytes of outputs, for recovery_policy::roll_back: a log record, and no
    /// ordering point, for each word that a section overwrites unread. Without it recovery can only
    /// complete sections.
    bool keep_overwritten = true;
    /// Computing time for which a re-execution may reach nothing new before it counts as endless;
    /// 0: no bound. New is a line stored to for the first time, a block, preserved bytes.
    std::uint32_t recovery_ms_max = 60'000;
};

/// The engine with the options' defaults, and with others (throws std::bad_alloc).
engine_ptr engine() noexcept;
engine_ptr engine(const options& how);

} // namespace hf::clobber
