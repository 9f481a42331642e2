// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the lanes of a pool hold when it is opened: read, judged, and bounded before anything is
// done with it. The steps are recovery.cpp's.
#pragma once

#include <open/pool_impl.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace hf {

struct lanes_found {
    std::vector<pending_section> pending;
    // Lanes that do not stop the open, though their contents are damaged or belie the clean close.
    std::vector<std::uint32_t> disbelieved;
};

/// Under salvage a lane that cannot be believed is given up as a whole: its section is no longer
/// pending, and stays as far done as it is. 'why': the refusal of an open without salvage.
void give_up(pool::impl& pool, lanes_found& found, std::uint32_t lane, const status& why);

/// Reads every lane; sets the lanes' epochs. Reads only.
/// Errors:   corrupt; none under salvage.
status read_lanes(pool::impl& pool, lanes_found& out);

/// Starts the disbelieved lanes anew. Perhaps no thread takes them for long: otherwise the open
/// after the next kill would refuse the pool, or recover sections that this open has disbelieved.
void start_anew(pool::impl& pool, const lanes_found& found) noexcept;
/// The same before the pool is marked open. When it returns, the new lanes are durable, and those
/// that a killed open had started anew are, too: a failure that took them back would leave those
/// sections pending in a pool that is marked open.
void start_anew_durably(pool::impl& pool, const lanes_found& found) noexcept;

/// Whether the pool's engines can recover these. Salvage gives up those that they cannot. Reads
/// only.
/// Errors:   missing_engine, corrupt, and the engines' own errors.
status check_pending(pool::impl& pool, lanes_found& found);

/// Puts blocks that the sections took or freed back as they were before them, and claims them.
/// Durable when it returns; idempotent. Salvage gives up a section whose blocks are another's, and
/// leaves them.
/// Errors:   corrupt.
status put_blocks_back(pool::impl& pool, lanes_found& found);

} // namespace hf
