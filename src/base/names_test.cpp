// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages name functions as their sources do. Goal: a message about the function that stopped a
// program needs no c++filt.
#include <base/names.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(Names, AreSpelledAsInTheSource) {
    EXPECT_STREQ(hf::readable_name("_Z4pushP4listm"), "push(list*, unsigned long)");
    EXPECT_STREQ(hf::readable_name("_ZL6hiddenv"), "hidden()");
}

TEST(Names, OfCAndOfDamageStayAsTheyAre) {
    for (const char* name : {"push", "", "_", "_Z", "_Zthis is none", "4list"})
        EXPECT_STREQ(hf::readable_name(name), name);
}

TEST(Names, OfClosuresSayWhereTheyStand) {
    const char* const closure =
        "_ZN2hf6detail3runIZ4userP4listE3$_0EEDaPKvNS0_8recordedIT_Xlestb0ELj16EEEE";
    ASSERT_TRUE(hf::is_closure(closure));
    EXPECT_FALSE(hf::is_closure("_Z4pushP4listm"));
    // The exact spelling of the second argument is the demangler's; the closure's place comes
    // first.
    EXPECT_EQ(
        std::string(hf::readable_name("_ZN2hf6detail3runIZ4userP4listE3$_0EEDaPKv"))
            .find("user(list*)::"),
        std::string(hf::readable_name("_ZN2hf6detail3runIZ4userP4listE3$_0EEDaPKv")).find("user"));
}

TEST(Names, FourMayStandInOneMessage) {
    const char* const linker_names[] = {"_Z1av", "_Z1bv", "_Z1cv", "_Z1dv"};
    std::string said;
    const char* shown[4];
    for (int i = 0; i < 4; ++i) shown[i] = hf::readable_name(linker_names[i]);
    for (const char* name : shown) said += name;
    EXPECT_EQ(said, "a()b()c()d()");
}

TEST(Names, OfAnyLengthFit) {
    std::string longest = "_Z";
    longest += "900" + std::string(900, 'x') + "v";
    EXPECT_EQ(hf::readable_name(longest.c_str()), std::string(511, 'x'));
}

} // namespace
