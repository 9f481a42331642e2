// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log: a program that wants Holdfast's lines gets them, and then nothing is printed.
#include <base/assert.hpp>
#include <base/log.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

struct line {
    hf::severity level;
    std::string text;
};

void keep(void* to, hf::severity level, const char* message) {
    static_cast<std::vector<line>*>(to)->push_back({level, message});
}

TEST(Log, GoesToTheCallbackAndThenNowhereElse) {
    std::vector<line> lines;
    hf::set_log(keep, &lines);
    testing::internal::CaptureStderr();
    hf::say(hf::severity::note, "opened");
    hf::say(hf::severity::error, "not closed");
    hf::set_log(nullptr);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].level, hf::severity::note);
    EXPECT_EQ(lines[1].text, "not closed");
}

TEST(Log, WithoutOneNotesAreSilentAndWarningsAreNot) {
    testing::internal::CaptureStderr();
    hf::say(hf::severity::note, "opened");
    hf::say(hf::severity::warning, "torn");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "holdfast: torn\n");
}

TEST(LogDeathTest, HasTheLastWord) {
    const auto to_stderr = [](void*, hf::severity level, const char* message) {
        std::fprintf(stderr, "%s%s", level == hf::severity::fatal ? "ends: " : "", message);
    };
    EXPECT_DEATH(
        {
            hf::set_log(to_stderr);
            hf::fatal("%d of %d", 1, 2);
        },
        "^ends: 1 of 2$");
}

} // namespace
