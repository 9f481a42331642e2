// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values that open_options and the engines' own options take (holdfast/pool.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace hf {

/// What the pool survives (docs/internals/design.md).
enum class mode : std::uint8_t { process, pmem, power };
/// "process", "pmem" or "power".
std::string_view name(mode m) noexcept;

/// When a section, or an update of a MOD structure, survives a power failure. A kill takes nothing
/// that has returned, but in mode power, where an update of a MOD structure that waits for the next
/// one goes with the process.
enum class durability : std::uint8_t {
    by_next_section, // when the thread's next one returns, or hf::settle(pool), or the pool is closed
    on_return,
};

enum class create : std::uint8_t { if_missing, never, always_new };

/// Where a pool is mapped. Elsewhere than at its canonical address it may be touched by code built
/// relocatable only (holdfast_relocatable); docs/internals/relocation.md.
enum class relocation : std::uint8_t {
    never,    // at the canonical address, or not at all
    if_taken, // elsewhere when that is taken, or when a crash left the pool open elsewhere
    always,   // elsewhere: to test
};

class engine;
/// An engine with its options, as open_options::engines takes it: clobber::engine(),
/// undo::engine({…}) … A pool that was opened with it keeps it.
using engine_ptr = std::shared_ptr<const engine>;

} // namespace hf
