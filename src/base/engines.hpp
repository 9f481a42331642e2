// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engines of this build: the table (holdfast/abi/engines.def), for the runtime.
#pragma once

#include <holdfast/recovery.hpp>

#include <bit>
#include <cstdint>
#include <span>
#include <string>

// A test has a table with one engine more (test/across/engines).
#if !defined(HF_ENGINE_TABLE)
#define HF_ENGINE_TABLE <holdfast/abi/engines.def>
#endif

namespace hf {

/// An engine's bit: engine_clobber, engine_undo …
enum engine_bit : std::uint32_t {
#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs) engine_##name = bit,
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
};

/// The most engines that a pool can have: a begin record has 16 bits for them.
inline constexpr unsigned engines_max = 16;
/// An engine's place wherever a pool has one for each.
constexpr unsigned engine_slot(engine_bit of) noexcept {
    return static_cast<unsigned>(std::countr_zero(static_cast<std::uint32_t>(of)));
}

/// The writes of a failure-atomic function that the compiler reports to an engine's log.
enum class engine_sections : std::uint8_t {
    none,
    inputs,
    writes,
    selected,
    buffered,
    steps,
    regions
};

/// Which program may open a pool that holds a pending section.
enum class recovery_build : std::uint8_t {
    any_build, // each that is given the engine
    its_build  // one that has the section's function in the same version
};

struct engine_row {
    const char* name;
    std::uint32_t bit; // 0: another row's engine, compiled differently
    engine_sections sections;
    recovery_verb verb;
    recovery_build build;
};

/// The rows, each the only one of its engine: engine_rows::clobber …
namespace engine_rows {
#define HF_ENGINE_ROW(name, bit, sections, verb, build, logs)                                      \
    inline constexpr engine_row name{#name, bit, engine_sections::sections, recovery_verb::verb,   \
                                     recovery_build::build};
#include HF_ENGINE_TABLE
#undef HF_ENGINE_ROW
} // namespace engine_rows

/// Whether recovery runs a pending section again, with the arguments of its first run.
constexpr bool runs_again(const engine_row& of) noexcept {
    return of.verb == recovery_verb::re_execute;
}

std::span<const engine_row* const> engine_table() noexcept;
/// The row of one bit; null: this build has no such engine.
const engine_row* engine_of(std::uint32_t bit) noexcept;
/// The bits whose engines have failure-atomic functions.
std::uint32_t bits_with_sections(std::uint32_t mask) noexcept;
/// "clobber, undo"; for bits that this build does not know, their numbers.
std::string engine_names(std::uint32_t mask);

} // namespace hf
