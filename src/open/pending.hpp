// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the lanes of a pool hold when it is opened: read, judged, and bounded before anything is done
// with it. The steps are recovery.cpp's.
#pragma once

#include <open/pool_impl.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace hf {

struct lanes_found {
    std::vector<pending_section> pending;
    // Lanes that do not keep the pool shut, though what stands in them is damaged or belies the clean
    // close.
    std::vector<std::uint32_t> disbelieved;
};

/// Reads every lane; sets the lanes' epochs. Reads only.
/// Errors:   corrupt.
status read_lanes(pool::impl& pool, lanes_found& out);

/// Starts the disbelieved lanes anew, which no thread may take for long: else the open after the next
/// kill, whatever that cuts short, would refuse the pool, or recover what this one has disbelieved.
void start_anew(pool::impl& pool, const lanes_found& found) noexcept;

/// Can the pool's engines recover these? Reads only.
/// Errors:   missing_engine, corrupt, and what the engines say.
status check_pending(const pool::impl& pool, std::span<const pending_section> pending);

/// Puts blocks that the sections took or freed back as they were before them, and claims them.
/// Durable when it returns; idempotent.
/// Errors:   corrupt.
status put_blocks_back(pool::impl& pool, std::span<const pending_section> pending);

} // namespace hf
