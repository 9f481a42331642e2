// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values of open_options and of the engines' own options (holdfast/pool.hpp).
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
/// that has returned. Exception: in mode power a kill loses an update of a MOD structure that waits
/// for the thread's next one.
enum class durability : std::uint8_t {
    by_next_section, // when the thread's next one returns, or hf::settle(pool), or the pool is closed
    on_return,
};

enum class create : std::uint8_t { if_missing, never, always_new };

/// Where a pool is mapped. When it is not at its canonical address, only code built relocatable may
/// touch it (holdfast_relocatable); docs/internals/relocation.md.
enum class relocation : std::uint8_t {
    never,    // at the canonical address, or not at all
    if_taken, // elsewhere when that is taken, or when a crash left the pool open elsewhere
    always,   // elsewhere: to test
};

class engine;
/// An engine with its options, an element of open_options::engines: clobber::engine(),
/// undo::engine({…}) … A pool that was opened with it keeps it alive.
using engine_ptr = std::shared_ptr<const engine>;

} // namespace hf
