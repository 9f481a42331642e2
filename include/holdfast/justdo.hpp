// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JUSTDO logging: a thread logs the store that it is about to make, and nothing else. A section
// runs from its first lock to its last unlock. After a crash the next open gives the section its
// locks back and resumes it where it was. Nothing is ever rolled back, so a fault inside a section
// is not undone.
//
// Crash:    resumed, by the build that has the function in the same version.
// Source:   JUSTDO §5-6; engine ido: Clobber Fig. 8. Differs: src/justdo/README.md.
#pragma once

#include <holdfast/options.hpp>

#include <cstdint>

namespace hf {
class pool;
}

namespace hf::justdo {

struct options {
    /// Computing time for which a resumed section may reach nothing new before it counts as
    /// endless; 0: no bound. New is a line stored to for the first time, a block, a lock.
    std::uint32_t recovery_ms_max = 60'000;
    /// pool::open returns when every resumed section has ended, and refuses the pool if one cannot
    /// end. Otherwise it returns when they all hold their locks again, and those that began without
    /// a lock have ended. The others go on beside new work, as sections of other threads do, and a
    /// fault in one ends the process.
    bool open_waits = false;
};

/// Waits until the sections that pool::open has resumed have ended: before reading without locks
/// what they guard. Closing the pool waits, too. Does nothing in a pool without this engine.
///
/// Requires: the thread holds no lock of the pool, and has no section open.
/// Threads:  any.
void wait(pool& in) noexcept;

/// The engine with the options' defaults, and with others (throws std::bad_alloc).
engine_ptr engine() noexcept;
engine_ptr engine(const options& how);

} // namespace hf::justdo
