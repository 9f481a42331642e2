// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what recovery makes of a log that a crash left. Method: a pool let go of in the middle, and
// damaged where a failure may damage it; the crash checker (src/simpo/simpo_program.cpp) has the
// rest.
#include <simpo/test_support.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::simpo {
namespace {

using test::digits;

class SimpoRecovery : public test::PoolTest {
protected:
    std::byte* record_at(position p) {
        const object_head& h = in.get<digits>().internals().head();
        auto* const at = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&h));
        return at + layout_of(h.object_bytes, h.log_lines).log_offset +
               p % h.log_lines * line_bytes;
    }
    bool told_of_a_loss() {
        return std::ranges::any_of(in.pool().warnings(), [](const std::string& each) {
            return each.find("given up") != std::string::npos;
        });
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoRecovery, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

/// Where a record can be torn.
class SimpoTornLog : public SimpoRecovery {};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoTornLog, ::testing::Values(mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoRecovery, CommittedGroupsAreReplayedAndTheTailIsNot) {
    in.open();
    auto d = in.make<digits>();
    d.defer<&digits::append>(1);
    d.sync();
    d.defer<&digits::append>(2);
    (void)d.call<&digits::append_and_get>(3U);
    d.defer<&digits::append>(4);
    in.crash();
    EXPECT_EQ(in.pool().recovered().replayed, 2U);
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 123U);
}

TEST_P(SimpoTornLog, AGroupThatMissesARecordIsNone) {
    in.open();
    auto d = in.make<digits>();
    d.defer<&digits::append>(1);
    d.sync();
    const position torn = d.internals().log().head();
    d.defer<&digits::append>(2);
    d.sync();
    record_at(torn)[32] ^= std::byte{1};
    in.crash();
    EXPECT_EQ(in.pool().recovered().replayed, 1U);
    EXPECT_FALSE(told_of_a_loss());
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 1U);
}

TEST_P(SimpoTornLog, GroupsBehindADamagedRecordAreNotGivenUpUnasked) {
    in.open();
    auto d = in.make<digits>();
    d.defer<&digits::append>(1);
    d.sync();
    const position damaged = d.internals().log().head();
    d.defer<&digits::append>(2);
    d.sync();
    d.defer<&digits::append>(3); // not before that group is durable
    d.sync();
    record_at(damaged)[32] ^= std::byte{1};
    in.let_go();
    for (const auto policy : {recovery_policy::complete, recovery_policy::roll_back}) {
        in.how.recovery = policy;
        const status refused = in.try_open();
        EXPECT_EQ(refused.code(), errc::corrupt);
        EXPECT_NE(refused.what().find("expected one that verifies"), std::string::npos)
            << refused.what();
    }
    in.how.recovery = recovery_policy::complete;
    in.how.salvage = true;
    in.open();
    EXPECT_TRUE(told_of_a_loss());
    EXPECT_EQ(in.pool().recovered().replayed, 1U);
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 1U);
    in.how.salvage = false;
    in.crash();
    EXPECT_FALSE(told_of_a_loss());
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 1U);
}

TEST_P(SimpoTornLog, WhatWasNotCommittedDoesNotComeBackWithALaterGroup) {
    in.open();
    auto d = in.make<digits>();
    const position first = d.internals().log().head();
    d.defer<&digits::append>(1);
    d.defer<&digits::append>(2);
    d.sync(); // a group whose first record is lost: its others, and its end, are whole
    record_at(first)[8] ^= std::byte{1};
    in.crash();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 0U);
    in.get<digits>().defer<&digits::append>(9); // where the first was
    in.get<digits>().sync();
    in.crash();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 9U);
}

TEST(SimpoOrderedLog, ItsRecordsHaveNoChecksAndTheIndexSaysHowManyCount) {
    test::test_pool in;
    in.open();
    auto d = in.make<digits>();
    const object_head& h = d.internals().head();
    EXPECT_EQ(h.logged, 0U);
    d.defer<&digits::append>(1);
    EXPECT_EQ(h.logged, 0U);
    (void)d.call<&digits::append_and_get>(2U);
    EXPECT_EQ(h.logged, d.internals().log().head());
    record r;
    const auto* const log = reinterpret_cast<const std::byte*>(&h) + layout_of(h).log_offset;
    EXPECT_TRUE(log_array::read(log, h, h.logged, 0, r));
    EXPECT_EQ(r.head.check, 0U);
    EXPECT_FALSE(log_array::read(log, h, 0, 0, r));
}

/// Below 'logged' nothing may be missing: a gap there is damage, and no torn tail.
class SimpoDamagedLog : public ::testing::Test {
protected:
    /// Leaves two groups, of one line each and one; 'change' gets the first line, and the head.
    template <class Change> void leave(Change&& change) {
        in.open();
        auto d = in.make<digits>(object_options{1_KiB});
        (void)d.call<&digits::append_and_get>(1U);
        (void)d.call<&digits::append_and_get>(2U);
        d.defer<&digits::append>(3);
        auto& h = const_cast<object_head&>(d.internals().head());
        change(reinterpret_cast<std::byte*>(&h) + layout_of(h).log_offset, h);
        in.let_go();
    }
    void expect_refused(const char* what) {
        const status refused = in.try_open();
        EXPECT_EQ(refused.code(), errc::corrupt);
        EXPECT_NE(refused.what().find(what), std::string::npos) << refused.what();
    }
    test::test_pool in;
};

TEST_F(SimpoDamagedLog, ARecordThatIsMissingRefusesThePoolAndSalvageKeepsThoseBefore) {
    leave([](std::byte* log, object_head&) { log[line_bytes + 8] ^= std::byte{1}; });
    expect_refused("expected one that verifies");
    in.how.salvage = true;
    in.open();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 1U);
}

TEST_F(SimpoDamagedLog, ARecordThatWouldGoOnBehindTheLastOneRefusesThePool) {
    leave([](std::byte* log, object_head&) { log[line_bytes + 30] = std::byte{60}; });
    expect_refused("expected one that verifies");
}

TEST_F(SimpoDamagedLog, ALogThatDoesNotEndWithAGroupRefusesThePool) {
    leave([](std::byte*, object_head& h) { h.logged = 3; });
    expect_refused("expected one that verifies");
}

TEST_F(SimpoDamagedLog, ALogThatIsLongerThanItsRoomRefusesThePool) {
    leave([](std::byte*, object_head& h) { h.logged = h.log_lines + 1; });
    expect_refused("expected as much logged as its log holds");
}

TEST(SimpoModes, APoolThatMovesBetweenModesHasAllThatWasCommitted) {
    test::test_pool in;
    in.open();
    in.make<digits>(object_options{1_KiB});
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < 120; ++i) {
        auto d = in.get<digits>();
        EXPECT_TRUE(d.call<&digits::sums_to>(sum)) << i;
        for (unsigned n = 0; n < i % 5; ++n, sum += n) d.defer<&digits::append>(n + 1);
        if (i % 4 != 0) d.sync();
        else (void)d.call<&digits::append_and_get>(7U), sum += 7;
        d.defer<&digits::append>(1'000); // lost by a crash, and else committed by close()
        in.how.mode = i % 5 < 3 ? mode::pmem : mode::process;
        if (i % 3 == 0) in.close(), sum += 1'000;
        else in.let_go();
        in.open();
    }
}

TEST_P(SimpoRecovery, ManyCrashesLeaveWhatTheCallsLeave) {
    in.open();
    in.make<digits>(object_options{1_KiB});
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < 300; ++i) {
        auto d = in.get<digits>();
        for (unsigned n = 0; n < i % 7; ++n, sum += n) d.defer<&digits::append>(n + 1);
        EXPECT_TRUE(d.call<&digits::sums_to>(sum));
        d.defer<&digits::append>(1'000);
        if (i % 3 == 0) d.checkpoint(), sum += 1'000;
        in.crash();
        ASSERT_TRUE(in.get<digits>().call<&digits::sums_to>(sum)) << i;
    }
}

TEST_P(SimpoRecovery, AReadOnlyOpenShowsTheObjectAndWritesNothing) {
    in.open();
    auto d = in.make<digits>();
    d.defer<&digits::append>(5);
    d.sync();
    in.let_go();
    for (int i = 0; i < 2; ++i) { // the file still has the group pending
        in.how.read_only = true;
        in.open();
        EXPECT_EQ(in.get<digits>().call<&digits::number>(), 5U);
        EXPECT_EQ(in.pool().recovered().replayed, 1U);
        EXPECT_EQ(object<digits>::create(in.pool(), "other").error().code(), errc::permission);
        EXPECT_EQ(object<digits>::destroy(in.pool(), "it").code(), errc::permission);
    }
    in.close(); // a child has no part in it
    EXPECT_DEATH((in.open(), in.get<digits>().defer<&digits::append>(1)), "read-only");
    EXPECT_DEATH((in.open(), in.get<digits>().call<&digits::append_and_get>(1U)), "read-only");
    in.how.read_only = false;
    in.open();
    EXPECT_EQ(in.pool().recovered().replayed, 1U);
}

TEST_P(SimpoRecovery, AChildOfForkHasNoPartInItsParentsObjects) {
    in.open();
    auto d = in.make<digits>();
    const std::function<void()> uses[] = {[&] { d.defer<&digits::append>(1); },
                                          [&] { (void)d.call<&digits::number>(); },
                                          [&] { d.sync(); }};
    for (const auto& use : uses) {
        const pid_t child = ::fork();
        if (child == 0) {
            if (::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
            use();
            ::_exit(0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        EXPECT_TRUE(WIFSIGNALED(how));
    }
    const pid_t child = ::fork(); // that only ends, by its destructors
    if (child == 0) {
        in.close();
        ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
    EXPECT_EQ(how, 0);
    d.defer<&digits::append>(6);
    d.sync();
    in.crash();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 6U);
}

} // namespace
} // namespace hf::simpo
