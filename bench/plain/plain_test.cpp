// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Third-party code in sections does what it does outside of them, and engine redo takes two ordering points
// for each section of it, whatever it overwrites. Every subject runs in every build, from empty through its
// tables' growth; what it holds in the end is compared with the standard library's containers.
#include "run.hpp"

#include <gtest/gtest.h>

namespace hf::bench::plain {
namespace {

run_options small() { return {.records = 700, .ops = 600, .batch = 100}; }

TEST(PlainCode, EveryBuildHasTheAnswersOfItsModel) {
    const std::vector<subject> all = corpus();
    EXPECT_GE(all.size(), 18U);
    for (const subject& each : all)
        for (const std::string& build : builds()) {
            SCOPED_TRACE(build);
            if (has(build, each)) EXPECT_EQ(run(build, each, small()).difference, "");
        }
}

constexpr std::uint64_t grows_max =
    12; // at most: doublings of a table on the way to so few elements

TEST(PlainCode, RedoTakesOneFenceASection) {
    for (const subject& one : corpus()) {
        const ran done = run("redo", one, small());
        // A table that grows changes every node: such a section takes the fences for its stores and its mark.
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
        for (const std::string& build : builds())
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
