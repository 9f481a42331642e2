// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: replicas make the same calls, each once, whatever is lost between the stream, a leader and
// its answer; a former leader answers nothing; a replica that lacks a call says so.
// Method: pools of one process and a stream in memory that loses answers, leases and entries where
// a test says so; calls that do not commute. test/attacks/kill/replicas_test.py has real ones.
#include <simpo/test_support.hpp>

#include <holdfast/simpo/replica.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hf::simpo {
namespace {

using namespace std::chrono_literals;
using test::digits;

/// What outlives all replicas.
struct kept_entries {
    std::vector<call_stream::entry> all;
    stream_position last;
    std::set<std::uint64_t> leases;
};

class stream_in_memory final : public call_stream {
public:
    explicit stream_in_memory(kept_entries& in) : in_(in) {}

    result<bool> append(stream_position at, std::string_view call,
                        stream_position behind) override {
        if (before_append) std::exchange(before_append, nullptr)();
        if (fails_before) return lost();
        if (behind != in_.last) return false;
        in_.all.push_back({at, std::string(call)});
        in_.last = at;
        if (std::exchange(loses_answer, false)) return lost();
        return true;
    }
    result<std::vector<entry>> read(stream_position after, std::size_t most,
                                    std::chrono::milliseconds) override {
        std::vector<entry> found;
        for (const entry& each : in_.all)
            if (each.at > after && found.size() < most) found.push_back(each);
        return found;
    }
    result<stream_position> last() override { return in_.last; }
    status keep_lease(std::uint64_t epoch, std::chrono::milliseconds) override {
        if (before_lease) std::exchange(before_lease, nullptr)();
        in_.leases.insert(epoch);
        return {};
    }
    result<bool> has_lease(std::uint64_t epoch) override { return in_.leases.contains(epoch); }

    std::function<void()> before_append, before_lease;
    bool loses_answer = false, fails_before = false;

private:
    static status lost() { return {errc::io_error, "the connection is gone"}; }
    kept_entries& in_;
};

/// A pool and its replica.
template <class T> struct member {
    explicit member(kept_entries& in, mode how = mode::process) : stream(in) {
        pool.how.mode = how;
        pool.open();
        join();
    }
    void join(const replica_options& how = {.object = {.log_bytes = 1_KiB, .result_bytes = 16}}) {
        auto opened = replica<T>::open(pool.pool(), "it", stream, how);
        ASSERT_TRUE(opened) << opened.error().what();
        it.emplace(std::move(*opened));
    }
    void crash() {
        it.reset();
        pool.crash();
        join();
    }
    bool step() {
        const auto leads = it->step(0ms);
        EXPECT_TRUE(leads) << leads.error().what();
        return leads && *leads;
    }
    errc step_error() {
        const auto leads = it->step(0ms);
        return leads ? errc::ok : leads.error().code();
    }
    void lead() {
        for (int i = 0; i < 4; ++i)
            if (step()) return;
        FAIL() << "it does not lead";
    }
    void follow() {
        for (int i = 0; i < 2; ++i) EXPECT_FALSE(step());
    }
    std::uint64_t number() { return it->local().template call<&digits::number>(); }

    test::test_pool pool;
    stream_in_memory stream;
    std::optional<replica<T>> it;
};

class SimpoReplica : public ::testing::TestWithParam<mode> {
protected:
    std::uint64_t append(member<digits>& by, std::uint32_t digit) {
        const auto made = by.it->call<&digits::append_and_get>(digit);
        EXPECT_TRUE(made) << made.error().what();
        return made ? *made : 0;
    }
    static std::string text(stream_position at) {
        return std::to_string(at.epoch) + "-" + std::to_string(at.number);
    }
    kept_entries entries;
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoReplica, ::testing::Values(mode::process, mode::power),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoReplica, FollowersMakeTheLeadersCalls) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    std::uint64_t expected = 0;
    for (std::uint32_t i = 0; i < 200; ++i) { // the log goes round
        expected = expected * 10 + i % 10;
        EXPECT_EQ(append(a, i % 10), expected);
    }
    ASSERT_TRUE(a.it->call<&digits::append>(7U).ok());
    b.follow();
    EXPECT_EQ(b.number(), expected * 10 + 7);
    EXPECT_EQ(*a.it->read<&digits::number>(), expected * 10 + 7);
    EXPECT_EQ(b.it->read<&digits::number>().error().code(), errc::conflict);
    EXPECT_EQ(b.it->call<&digits::append>(1U).code(), errc::conflict);
    b.crash();
    b.follow();
    EXPECT_EQ(b.number(), expected * 10 + 7);
}

TEST_P(SimpoReplica, AFormerLeaderAnswersNothing) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    append(a, 1);
    entries.leases.clear();
    b.lead();
    EXPECT_TRUE(a.it->leads()) << "it does not know yet";
    EXPECT_EQ(a.it->read<&digits::number>().error().code(), errc::conflict);
    EXPECT_FALSE(a.it->leads());
    append(b, 2);
    a.follow();
    EXPECT_EQ(a.number(), 12U);
    entries.leases.clear();
    a.lead();
    append(a, 3);
    EXPECT_EQ(b.it->call<&digits::append_and_get>(4U).error().code(), errc::conflict);
    EXPECT_FALSE(b.it->leads());
    EXPECT_EQ(b.number(), 12U) << "a refused call is made nowhere";
    b.follow();
    EXPECT_EQ(b.number(), 123U);
}

TEST_P(SimpoReplica, ACallThatIsInTheStreamIsMadeOnceWhateverIsLost) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    append(a, 1);
    a.stream.loses_answer = true;
    EXPECT_EQ(a.it->call<&digits::append_and_get>(2U).error().code(), errc::io_error);
    EXPECT_FALSE(a.it->leads());
    EXPECT_EQ(a.number(), 1U) << "it cannot know";
    a.follow();
    EXPECT_EQ(a.number(), 12U);
    entries.leases.clear();
    a.lead();
    a.stream.loses_answer = true;
    EXPECT_EQ(a.it->call<&digits::append_and_get>(3U).error().code(), errc::io_error);
    a.crash(); // between the stream and the pool
    entries.leases.clear();
    a.lead();
    EXPECT_EQ(a.number(), 123U);
    append(a, 4);
    a.crash(); // behind both
    a.stream.fails_before = true;
    EXPECT_EQ(a.number(), 1234U);
    entries.leases.clear();
    EXPECT_EQ(a.step_error(), errc::io_error);
    a.stream.fails_before = false;
    a.lead();
    EXPECT_EQ(append(a, 5), 12345U);
    b.follow();
    EXPECT_EQ(b.number(), 12345U);
}

TEST_P(SimpoReplica, ALeaderHasTheLastCallsOfTheOneBefore) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    append(a, 1);
    b.follow();
    entries.leases.clear();
    b.stream.before_append = [&] { append(a, 2); }; // behind what b has read
    b.lead();
    EXPECT_EQ(b.number(), 12U);
    EXPECT_EQ(append(b, 3), 123U);
    EXPECT_EQ(a.it->read<&digits::number>().error().code(), errc::conflict);
    a.follow();
    entries.leases.clear();
    a.stream.before_lease = [&] { append(b, 4); };
    a.lead();
    EXPECT_EQ(append(a, 5), 12345U);
}

TEST_P(SimpoReplica, OneOfTwoTakesOver) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    b.stream.before_append = [&] { EXPECT_TRUE(a.step()); };
    EXPECT_FALSE(b.step());
    EXPECT_FALSE(b.it->leads());
    EXPECT_TRUE(a.it->leads());
}

TEST_P(SimpoReplica, AReplicaThatLacksACallRefusesToGoOn) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    append(a, 1);
    b.follow();
    append(a, 2);
    append(a, 3);
    const auto whole = entries;
    const auto behind = text(entries.all[1].at), lacks = text(entries.all[2].at),
               found = text(entries.all[3].at);
    entries.all.erase(entries.all.begin() + 2);
    const auto refused = b.it->step(0ms);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::conflict);
    EXPECT_NE(refused.error().what().find("expected the call behind " + behind +
                                          " in the stream, "
                                          "found " +
                                          found + ", which is behind " + lacks),
              std::string::npos)
        << refused.error().what();
    EXPECT_EQ(b.number(), 1U);
    entries = whole;
    b.follow();
    EXPECT_EQ(b.number(), 123U);
    // A stream that has lost its end.
    entries.all.pop_back();
    entries.last = entries.all.back().at;
    entries.leases.clear();
    EXPECT_EQ(b.step_error(), errc::conflict);
    b.crash();
    EXPECT_EQ(b.step_error(), errc::conflict);
    // It begins another one.
    b.it.reset();
    ASSERT_TRUE(replica<digits>::leave(b.pool.pool(), "it").ok());
    ASSERT_TRUE(replica<digits>::leave(b.pool.pool(), "it").ok());
    entries = {};
    b.join();
    b.lead();
    EXPECT_EQ(append(b, 4), 1234U);
}

TEST_P(SimpoReplica, ALeaderEndsWhenItsStreamIsDeleted) {
    for (const bool reads : {false, true}) {
        entries = {};
        member<digits> a(entries, GetParam()), b(entries, GetParam());
        a.lead();
        append(a, 1);
        append(a, 2);
        entries = {};
        b.lead(); // another stream, which has as many calls
        append(b, 3);
        append(b, 4);
        if (reads) {
            EXPECT_EQ(a.it->read<&digits::number>().error().code(), errc::conflict);
        }
        EXPECT_EQ(a.it->call<&digits::append>(5U).code(), errc::conflict);
        EXPECT_FALSE(a.it->leads());
        EXPECT_EQ(a.step_error(), errc::conflict);
        EXPECT_EQ(append(b, 6), 346U);
        EXPECT_EQ(a.step_error(), errc::conflict);
        EXPECT_EQ(a.number(), 12U);
        EXPECT_TRUE(b.it->leads());
    }
}

TEST_P(SimpoReplica, OneLeadsWhenTheStreamHasLostAnother) {
    for (const bool reads : {false, true}) {
        entries = {};
        member<digits> a(entries, GetParam()), b(entries, GetParam());
        a.lead();
        append(a, 1);
        const auto lost_since = entries;
        entries.leases.clear();
        b.lead();
        append(b, 2);
        entries = lost_since;
        if (reads) {
            EXPECT_EQ(b.it->read<&digits::number>().error().code(), errc::conflict);
        }
        EXPECT_EQ(append(a, 3), 13U);
        EXPECT_EQ(b.it->call<&digits::append>(4U).code(), errc::conflict);
        EXPECT_FALSE(b.it->leads());
        EXPECT_EQ(b.step_error(), errc::conflict);
        EXPECT_EQ(b.number(), 12U);
        EXPECT_EQ(append(a, 5), 135U);
    }
}

TEST_P(SimpoReplica, AReplicaBehindATrimmedStreamSaysSo) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    append(a, 1);
    b.follow();
    append(a, 2);
    entries.all.clear();
    EXPECT_EQ(b.step_error(), errc::conflict);
    entries.leases.clear();
    EXPECT_EQ(b.step_error(), errc::conflict);
    append(a, 3);
    EXPECT_EQ(b.step_error(), errc::conflict);
    entries.all.clear();
    a.crash();
    a.lead(); // its beginning is all that is there
    EXPECT_EQ(entries.all.size(), 1U);
    EXPECT_EQ(b.step_error(), errc::conflict);
    entries.leases.clear();
    EXPECT_EQ(b.step_error(), errc::conflict);
    EXPECT_EQ(b.number(), 1U);
    EXPECT_EQ(append(a, 4), 1234U);
}

TEST_P(SimpoReplica, ALastEntryThatIsTrimmedIsPassedWhereNoCallCanBeMissing) {
    member<digits> a(entries, GetParam());
    a.lead();
    entries.all.clear();
    entries.leases.clear();
    member<digits> b(entries, GetParam());
    b.lead(); // the leader before had made none
    append(b, 1);
    EXPECT_EQ(a.it->read<&digits::number>().error().code(), errc::conflict);
    a.follow();
    entries.leases.clear();
    a.lead();
    EXPECT_EQ(b.it->read<&digits::number>().error().code(), errc::conflict);
    b.follow();
    entries.all.clear();
    b.follow(); // it has passed that entry
    b.crash();
    EXPECT_EQ(b.step_error(), errc::conflict) << "it cannot know";
    append(a, 2);
    b.follow(); // now it can
    EXPECT_EQ(b.number(), 12U);
}

TEST_P(SimpoReplica, WhatIsNoCallOfThisBuildIsRefused) {
    member<digits> a(entries, GetParam()), b(entries, GetParam());
    a.lead();
    append(a, 1);
    const std::string good = entries.all.back().call;
    const auto tried = [&](std::string call) {
        entries.all.back().call = std::move(call);
        return b.step_error();
    };
    const auto changed = [&](std::size_t at) {
        std::string call = good;
        call[at] = static_cast<char>(call[at] ^ 1);
        return call;
    };
    EXPECT_EQ(tried("x"), errc::corrupt);
    EXPECT_EQ(tried(good + "x"), errc::corrupt);
    EXPECT_EQ(tried(good.substr(0, good.size() - 8)), errc::corrupt);
    EXPECT_EQ(tried(changed(0)), errc::corrupt);           // its first word
    EXPECT_EQ(tried(changed(24)), errc::function_changed); // identifier
    EXPECT_EQ(tried(changed(32)), errc::function_changed); // schema
    EXPECT_EQ(tried(changed(36)), errc::function_changed); // version
    EXPECT_EQ(tried(changed(40)), errc::wrong_layout);     // bytes of the class
    EXPECT_EQ(tried(changed(48)), errc::wrong_layout);     // its version
    EXPECT_EQ(b.number(), 0U);
    EXPECT_EQ(tried(good), errc::ok);
    EXPECT_EQ(b.number(), 1U);
}

TEST_P(SimpoReplica, WhatCannotBeMadeDoesNotReachTheStream) {
    test::test_pool in;
    in.how.mode = GetParam();
    in.open();
    in.make<digits>(); // without room for a caller
    stream_in_memory stream(entries);
    EXPECT_EQ(replica<digits>::open(in.pool(), "it", stream).error().code(), errc::limit_reached);
    auto small = replica<digits>::open(in.pool(), "small", stream, {.object = {.result_bytes = 0}});
    ASSERT_TRUE(small) << small.error().what();
    ASSERT_TRUE(*small->step(0ms));
    EXPECT_EQ(small->call<&digits::append_and_get>(1U).error().code(), errc::bad_argument);
    EXPECT_EQ(entries.all.size(), 1U) << "its leading alone";
    EXPECT_TRUE(small->leads());
    EXPECT_TRUE(small->call<&digits::append>(1U).ok());
}

} // namespace
} // namespace hf::simpo
