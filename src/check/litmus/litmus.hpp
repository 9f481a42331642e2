// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Litmus tests of persistent x86-TSO: programs so small that every outcome can be enumerated,
// twice: by the model that the crash checker uses (machine.hpp) and by axioms (enumerator.hpp). The
// model is right about a test if both find the same outcomes. docs/internals/persistency-model.md
//
// A program is written
//
//     x=1; clwb x; sfence; y=1 || a=y; b=x
//
// with threads between '||'. Locations are 8-byte words: x, y, z and w are the first words of four
// cache lines, x1 is the second word of the line of x; all hold 0 at first. Registers are a to h.
//
//     x=1              store              x:2=1     16-byte store of 1 to both words: x and x1
//     x=nt 1           non-temporal store
//     a=x              load               a=xchg x 1, a=add x 1, a=cas x 0 1    locked operations
//     clflush x, clflushopt x, clwb x, sfence, mfence
#pragma once

#include <holdfast/author/persist.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hf::check::litmus {

inline constexpr unsigned words_per_line = 8;

enum class op : std::uint8_t {
    store,
    nt_store,
    load,
    xchg,
    add,
    cas,
    clflush,
    clflushopt,
    clwb,
    sfence,
    mfence
};

struct instruction {
    op what;
    std::uint8_t word = 0;     // line * words_per_line + word of the line; fences: not used
    std::uint8_t words = 1;    // stored
    std::uint8_t value = 0;    // stored or added
    std::uint8_t expected = 0; // cas
    std::uint8_t reg = 0;      // loaded

    unsigned line() const noexcept { return word / words_per_line; }
    bool touches(unsigned w) const noexcept { return word <= w && w < unsigned{word} + words; }
};

struct program {
    std::vector<std::vector<instruction>> threads;
    std::vector<std::uint8_t> locations; // words that the text names, ascending
    unsigned registers = 0;
    unsigned lines = 0;
};

/// Values of the program's locations, then of its registers; a load not made yet shows 'unset'.
using outcome = std::string;
inline constexpr char unset = '_';

struct outcomes {
    std::set<outcome> crash; // memory after a failure at any moment, and what had been loaded
    std::set<outcome> done;  // the same for failures after everything has executed
    std::set<outcome> final; // no failure: memory as the threads see it in the end

    bool operator==(const outcomes&) const = default;
};

/// A sentence about one of the three sets: "crash forbids y=1 x=0".
struct expectation {
    std::set<outcome> outcomes::* where;
    bool allowed;
    std::vector<std::pair<std::size_t, char>> values; // index in an outcome, value
};

struct litmus_test {
    std::string name;
    hf::domain domain;
    std::string text;
    std::string expected; // sentences between ';', each of them from the literature
};

/// Requires: well-formed text; broken text breaks a contract.
program parse(std::string_view text);
std::vector<expectation> parse_expected(const program& of, std::string_view text);
bool holds(const expectation& what, const outcomes& found);

/// "x=1 y=0 a=_".
std::string to_string(const program& of, const outcome& what);
/// The outcomes that one side has and the other has not, one a line; empty if they are equal.
std::string difference(const program& of, const outcomes& model, const outcomes& enumerated);

/// The tests written by hand (table.cpp).
const std::vector<litmus_test>& table();
/// A test drawn from 'seed', the same on every machine.
litmus_test generated(std::uint64_t seed);

struct litmus_result {
    unsigned tests = 0;
    unsigned differences = 0;  // tests on which the model and the enumerator do not agree
    unsigned expectations = 0; // sentences checked on both
    unsigned unmet = 0;
    std::uint64_t outcomes = 0;
    std::string text; // of every difference
};

/// The table, then 'drawn' generated tests.
litmus_result run_litmus(unsigned drawn = 500);

} // namespace hf::check::litmus
