// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a switch that is set to anything but 1 or 0 is off, and is said once.
#include <base/environment.hpp>

#include <holdfast/log.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace {

std::vector<std::string> heard_lines;

/// What the switch is, and the lines about it of two looks.
std::pair<bool, std::vector<std::string>> looked_at(const char* value) {
    constexpr const char* variable = "HOLDFAST_OF_THIS_TEST";
    if (value == nullptr) ::unsetenv(variable);
    else ::setenv(variable, value, 1);
    heard_lines.clear();
    hf::environment_switch asked(variable);
    const bool first = asked.is_on();
    EXPECT_EQ(asked.is_on(), first);
    return {first, heard_lines};
}

TEST(EnvironmentSwitch, IsOnWithOneAlone) {
    hf::set_log([](void*, hf::severity, const char* line) { heard_lines.push_back(line); });
    using said = std::pair<bool, std::vector<std::string>>;
    EXPECT_EQ(looked_at("1"), (said{true, {}}));
    EXPECT_EQ(looked_at("0"), (said{false, {}}));
    EXPECT_EQ(looked_at(nullptr), (said{false, {}}));
    for (const std::string odd : {"yes", "2", "", "01", "1 "})
        EXPECT_EQ(looked_at(odd.c_str()), (said{false,
                                                {"HOLDFAST_OF_THIS_TEST: expected 1 or 0, found '" +
                                                 odd + "': it is off"}}));
    hf::set_log(nullptr);
}

} // namespace
