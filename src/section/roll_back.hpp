// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rolling a pending section back, of an engine that logs the old bytes of what it overwrites:
// everything it stored is taken back, and no function of this build is needed.
#pragma once

#include <open/pool_impl.hpp>

namespace hf {

/// Takes the section back; durable when it returns, and idempotent until then.
/// Requires: its records are bounded, and its blocks are back and claimed (open/pending.hpp).
void roll_back(pool::impl& pool, const pending_section& pending);

/// Gives back what a recovered section does not hold (any more): its log; the blocks that it freed,
/// where it has 'happened'; else those that it took, whose bits open has cleared. Requires: its
/// mark is durable.
void release_blocks(pool::impl& pool, const pending_section& section, bool happened);

} // namespace hf
