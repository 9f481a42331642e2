// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Third-party code in sections does what it does outside of them, and engine redo takes two
// ordering points for each section of it, whatever it overwrites. Every subject runs in every
// build, from empty through its tables' growth; what it holds in the end is compared with the
// standard library's containers.
#include "floor.hpp"
#include "run.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace hf::bench::plain {
namespace {

run_options small() { return {.records = 700, .ops = 600, .batch = 100}; }

TEST(PlainCode, EveryBuildHasTheAnswersOfItsModel) {
    const std::vector<subject> all = corpus();
    EXPECT_GE(all.size(), 18U);
    for (const subject& each : all)
        for (const std::string& build : builds(hf::mode::pmem)) {
            SCOPED_TRACE(build);
            if (has(build, each)) EXPECT_EQ(run(build, each, small()).difference, "");
        }
}

TEST(PlainCode, TheLogByHandIsKeptWithTheAnswersOfTheModel) {
    run_options options = small();
    options.mode = hf::mode::process;
    for (const subject& each : corpus())
        EXPECT_EQ(run("by-hand", each, options).difference, "") << each.name;
}

TEST(PlainCode, TheLogByHandUndoesWhatASectionHasBegun) {
    arena memory("/dev/shm", 64 << 20, false, floor_fences::one);
    auto* bytes = static_cast<std::byte*>(memory.root());
    auto* words = static_cast<std::uint64_t*>(memory.root());
    std::iota(words, words + root_bytes / sizeof *words, 1);
    const std::vector<std::byte> before(bytes, bytes + root_bytes);
    const auto store = [](void* to, const void* from, std::uint64_t count) {
        hf_by_hand_log(to, count);
        std::memcpy(to, from, count);
    };
    void* const block = memory.take(16);
    const std::uint64_t ones[] = {~0UL, ~0UL, ~0UL};
    for (const bool whole : {false, true}) {
        EXPECT_EQ(hf_by_hand_begin(nullptr, nullptr), 1);
        EXPECT_EQ(hf_by_hand_begin(nullptr, nullptr), 0);
        store(words, ones, 8);
        store(words, bytes + 9, 8);     // again
        store(bytes + 11, ones, 1);     // in a word
        store(bytes + 30, ones, 4);     // across two
        store(bytes + 100, ones, 23);   // a range
        store(bytes + 101, words, 900); // and most of it again
        hf_by_hand_free(block);
        if (whole) {
            hf_by_hand_commit();
            EXPECT_NE(std::memcmp(bytes, before.data(), root_bytes), 0);
            EXPECT_EQ(memory.take(16), block);
        } else {
            memory.roll_back();
            EXPECT_EQ(std::memcmp(bytes, before.data(), root_bytes), 0);
            EXPECT_NE(memory.take(16), block);
        }
    }
    memory.roll_back(); // nothing is pending
    EXPECT_NE(std::memcmp(bytes, before.data(), root_bytes), 0);
}

constexpr std::uint64_t grows_max =
    12; // at most: doublings of a table on the way to so few elements

TEST(PlainCode, RedoTakesOneFenceASection) {
    for (const subject& one : corpus()) {
        const ran done = run("redo", one, small());
        // A table that grows changes every node: such a section takes the fences for its stores and
        // its mark.
        EXPECT_GE(done.before.events.fences, done.before.sections) << one.name;
        EXPECT_LE(done.before.events.fences, done.before.sections + 2 * grows_max) << one.name;
        for (const row& each : done.rows) {
            EXPECT_EQ(each.sections, small().ops);
            EXPECT_GE(each.events.fences, each.sections) << each.name;
            EXPECT_LE(each.events.fences, each.sections + 2 * grows_max) << each.name;
        }
    }
}

TEST(PlainCode, EveryEngineHasAllOfItAndLibpmemobjTheTextbook) {
    for (const subject& each : corpus())
        for (const std::string& build : builds(hf::mode::process))
            EXPECT_EQ(has(build, each),
                      build != "pmdk" || std::string_view(each.name) == "textbook chained map")
                << build << " " << each.name;
}

TEST(PlainCode, FloorsTakeTheirOneOrTwo) {
    for (const subject& one : corpus()) {
        for (const row& each : run("none", one, small()).rows) EXPECT_EQ(each.events.fences, 0U);
        for (const row& each : run("floor-1f", one, small()).rows)
            EXPECT_EQ(each.events.fences, each.sections) << each.name;
        for (const row& each : run("floor-2f", one, small()).rows)
            EXPECT_EQ(each.events.fences, 2 * each.sections) << each.name;
    }
}

} // namespace
} // namespace hf::bench::plain
