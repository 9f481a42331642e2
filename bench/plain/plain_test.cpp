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
    for (std::size_t number = 0; number < all.size(); ++number)
        for (const std::string& build : builds()) {
            SCOPED_TRACE(build);
            EXPECT_EQ(run(build, number, small()).difference, "");
        }
}

TEST(PlainCode, RedoTakesTwoFencesASection) {
    for (std::size_t number = 0; number < corpus().size(); ++number) {
        const ran done = run("redo", number, small());
        for (const row& each : done.rows) {
            EXPECT_EQ(each.sections, small().ops);
            EXPECT_EQ(each.events.fences, 2 * each.sections) << each.name;
        }
    }
}

TEST(PlainCode, FloorsTakeTheirOneOrTwo) {
    for (std::size_t number = 0; number < corpus().size(); ++number) {
        for (const row& each : run("none", number, small()).rows) EXPECT_EQ(each.events.fences, 0U);
        for (const row& each : run("floor-1f", number, small()).rows)
            EXPECT_EQ(each.events.fences, each.sections) << each.name;
        for (const row& each : run("floor-2f", number, small()).rows)
            EXPECT_EQ(each.events.fences, 2 * each.sections) << each.name;
    }
}

} // namespace
} // namespace hf::bench::plain
