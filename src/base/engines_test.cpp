// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/engines.hpp>

#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Engines, AreFoundByTheirOneBit) {
    for (const engine_row* row : engine_table())
        EXPECT_EQ(engine_of(row->bit), row->bit == 0 ? nullptr : row) << row->name;
    EXPECT_EQ(engine_of(engine_clobber | engine_undo), nullptr);
    EXPECT_EQ(engine_of(1u << 14), nullptr);
}

TEST(Engines, AreNamedAndUnknownBitsCounted) {
    EXPECT_EQ(engine_names(engine_clobber | engine_undo), "clobber, undo");
    EXPECT_EQ(engine_names(engine_mod | 1u << 14), "mod, unknown engine bit 14");
    EXPECT_EQ(engine_names(0), "");
    const std::uint32_t logging = engine_clobber | engine_undo;
    EXPECT_EQ(bits_with_sections(logging | engine_mod | 1u << 14), logging);
}

TEST(Engines, AReportAddsUpWhatEachDid) {
    recovery_report report;
    engine_recovery one{"undo", 2}, other{"clobber", 3};
    one[recovery_verb::roll_back] = 2;
    other[recovery_verb::re_execute] = 2;
    other[recovery_verb::discard] = 1;
    report.add(one);
    report.add(other);
    EXPECT_EQ(report.sections_pending, 5U);
    EXPECT_EQ(report.rolled_back, 2U);
    EXPECT_EQ(report.re_executed, 2U);
    EXPECT_EQ(report.discarded, 1U);
    EXPECT_EQ(report.engines.size(), 2U);
}

} // namespace
} // namespace hf
