// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: an engine touches its own folder and the table, nothing else. Method: this folder has one.
// Its program is instrumented by the plugin, recovered by pool::open and named in reports and
// refusals by code that was compiled with another table: only base/engines.cpp and the plugin's
// Engines.cpp are compiled anew.
#include "dummy/engine.hpp"

#include <holdfast/pool.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct pair {
    long first, second;
};

HF_TXFUNC void set_both(pair* p, long value) noexcept {
    p->first = value;
    p->second = value;
}

HF_TXFUNC void set_one_and_die(pair* p, long value) noexcept {
    p->first = value;
    hf::crash_point("between");
    p->second = value;
}
const int armed = ::setenv("HOLDFAST_CRASH_AT", "between", 1);

class Room : public ::testing::Test {
protected:
    Room() {
        options_.layout = "room_test/1";
        options_.create_bytes = 1 << 20;
        options_.engines = {hf::dummy::engine()};
    }
    ~Room() override { ::unlink(path_.c_str()); }

    /// A process that dies in the middle of a section.
    void die_halfway() {
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = hf::pool::open(path_, options_);
            if (p) set_one_and_die(p->root<pair>(), 2);
            ::_exit(0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    }

    const std::string path_ = "/dev/shm/hf_room_test." + std::to_string(::getpid());
    hf::open_options options_;
};

TEST_F(Room, ItsSectionsAreRecoveredByItsVerb) {
    {
        auto p = hf::pool::open(path_, options_);
        ASSERT_TRUE(p) << p.error().what();
        set_both(p->root<pair>(), 1);
        EXPECT_EQ(hf::dummy::begun, 1);
    }
    die_halfway();
    auto p = hf::pool::open(path_, options_);
    ASSERT_TRUE(p) << p.error().what();
    EXPECT_EQ(p->root<pair>()->first, 1);
    EXPECT_EQ(p->root<pair>()->second, 1);
    ASSERT_EQ(p->recovered().engines.size(), 1U);
    const hf::engine_recovery& done = p->recovered().engines[0];
    EXPECT_STREQ(done.engine, "dummy");
    EXPECT_EQ(done.sections_pending, 1U);
    EXPECT_EQ(done[hf::recovery_verb::roll_back], 1U);
}

TEST_F(Room, APoolOfItsIsRefusedByNameWithoutIt) {
    die_halfway();
    options_.engines.clear();
    const auto p = hf::pool::open(path_, options_);
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().code(), hf::errc::missing_engine);
    EXPECT_NE(p.error().what().find("dummy"), std::string::npos) << p.error().what();
}

} // namespace
