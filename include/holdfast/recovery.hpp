// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a pool's recovery does with work that a crash cut short, and its account.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hf {

/// What an engine does with its unfinished sections (docs/internals/recovery.md). Pools recover
/// engines in the order of their verbs: engines that roll back or replay come before those that run
/// a program's functions.
///
/// Source:   discard MOD §4-5, replay SIMPO §3, re_execute Clobber §3-4, resume JUSTDO §5-6.
enum class recovery_verb : std::uint8_t { discard, roll_back, replay, re_execute, resume };
inline constexpr std::size_t recovery_verbs = 5;

/// What becomes of a section that a crash cut short.
enum class recovery_policy : std::uint8_t {
    complete,  // what its engine's verb says
    roll_back, // gone, whichever engine it ran on; needs no function of this build
};

/// What recovery did with the sections of one engine. A section may end by another verb than its
/// engine's own: rolled back by the policy or for want of room, or discarded because it had stored
/// nothing in place yet.
struct engine_recovery {
    const char* engine = "";
    std::uint32_t sections_pending = 0;                   // found unfinished
    std::array<std::uint32_t, recovery_verbs> ended_by{}; // by verb
    std::uint32_t no_room = 0; // of those rolled back: the pool had no room to complete them

    std::uint32_t& operator[](recovery_verb v) noexcept { return ended_by[std::size_t(v)]; }
    std::uint32_t operator[](recovery_verb v) const noexcept { return ended_by[std::size_t(v)]; }
};

struct recovery_report {
    // Sums over all engines.
    std::uint32_t sections_pending = 0;
    std::uint32_t re_executed = 0;
    std::uint32_t replayed = 0;
    std::uint32_t resumed = 0;
    std::uint32_t rolled_back = 0;
    std::uint32_t no_room = 0;
    std::uint32_t discarded = 0;
    double open_ms = 0;                   // whole open, recovery included
    std::vector<engine_recovery> engines; // those that had sections pending, in recovery's order

    void add(const engine_recovery& more);
};

} // namespace hf
