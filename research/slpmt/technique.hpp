// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The techniques that are compared, as settings of one machine, and what a store may ask of it.
// Source: SLPMT §II-III, §VI-C.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hf::slpmt {

/// The operands of storeT; without them it is a store.
struct operands {
    bool lazy = false;
    bool log_free = false;
    friend bool operator==(const operands&, const operands&) = default;
};
inline constexpr operands eager_logged{}, log_free{false, true}, lazy_log_free{true, true},
    lazy_logged{true, false};

/// The effect of a store on the bits of its line. Source: Table I.
constexpr bool sets_persist_bit(operands how) { return !how.lazy; }
constexpr bool sets_log_bit(operands how) { return !how.log_free; }

enum class logging : std::uint8_t {
    words,   // of 8 bytes, joined by the tiers of the log buffer
    lines,   // of 64 bytes, the whole line at its first logged store
    stores,  // 16 bytes for every store, in the order of the stores (EDE)
    touched, // the same, but none for a word whose record has not been written yet
};

struct technique {
    std::string_view name;
    logging log = logging::words;
    bool honours_log_free = true;
    bool honours_lazy = true;
    bool posted =
        false; // log and data need not wait for each other: the memory controller orders them
    std::uint32_t instructions_per_record = 0; // where programs write records themselves
    bool redo = false;                         // records hold the new value, not the old

    // The paper's text has holes where these are false (docs/internals/slpmt.md).
    bool speculates = true;       // (a) logs a group's other words when half-logged groups leave L1
    bool checks_hits = true;      // (c) looks into signatures at every first store of a line
    bool persists_leaving = true; // (d) lazy lines that leave the private caches
    bool guards_overflow = true;  // (e) redo: logged lines that leave them in mid-transaction
    bool logs_mixed_lines = true; // (f) redo: log-free words of lines that have logged ones

    bool writes_lazy = true; // false: no machine, but what a lazy line that cost nothing would gain
};

inline constexpr technique slpmt{.name = "SLPMT"};
inline constexpr technique fg{.name = "FG", .honours_log_free = false, .honours_lazy = false};
inline constexpr technique fg_lg{.name = "FG+LG", .honours_lazy = false};
inline constexpr technique fg_lz{.name = "FG+LZ", .honours_log_free = false};
inline constexpr technique fg_lz_unwritten{
    .name = "FG+LZ, unwritten", .honours_log_free = false, .writes_lazy = false};
inline constexpr technique slpmt_unwritten{.name = "SLPMT, unwritten", .writes_lazy = false};
inline constexpr technique slpmt_lines{.name = "SLPMT, lines", .log = logging::lines};
inline constexpr technique fg_lines{
    .name = "FG, lines", .log = logging::lines, .honours_log_free = false, .honours_lazy = false};
inline constexpr technique atom{.name = "ATOM",
                                .log = logging::lines,
                                .honours_log_free = false,
                                .honours_lazy = false,
                                .posted = true};
/// A record costs the program a load of the old value, two stores and the instruction that ties
/// them.
inline constexpr technique ede{.name = "EDE",
                               .log = logging::stores,
                               .honours_log_free = false,
                               .honours_lazy = false,
                               .posted = true,
                               .instructions_per_record = 4};

constexpr technique with_redo(technique how, std::string_view name) {
    how.redo = true;
    how.name = name;
    return how;
}

} // namespace hf::slpmt
