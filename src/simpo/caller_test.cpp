// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a call with an identifier is made once and answers the same each time, whatever lies
// between: crashes, checkpoints, truncation, other threads; a deterministic program that is run
// again ends as if nothing had been.
// Method: calls that do not commute, repeated after each of these; refusals one by one.
#include <simpo/test_support.hpp>

#include <holdfast/simpo/caller.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hf::simpo {
namespace {

using test::digits;
using u64 = std::uint64_t;

constexpr object_options for_three{
    .log_bytes = 1_KiB, .callers = 3, .results = 2, .result_bytes = 16};

/// Kinds of results: nothing, more than a word, less than one.
class purse {
public:
    static constexpr class_name simpo_class{"purse", 1};
    struct balance {
        u64 taken, left;
    };
    void put(u64 n) noexcept { has_ += n; }
    void empty() noexcept { has_ = 0; }
    balance take(u64 n) noexcept {
        const u64 taken = std::min(n, has_);
        has_ -= taken;
        return {taken, has_};
    }
    std::uint8_t low() const noexcept { return static_cast<std::uint8_t>(has_); }
    u64 has() const noexcept { return has_; }
    std::array<u64, 3> wide() const noexcept { return {has_, has_, has_}; }

private:
    u64 has_ = 0;
};

template <class T> T must(result<T> got) {
    if (!got) fatal("%s", got.error().what().c_str());
    return *got;
}

class SimpoCaller : public test::PoolTest {
protected:
    template <class T> caller<T> by(u64 id) { return must(caller<T>::of(in.get<T>(), id)); }
    template <class T> retraced<T> again(u64 id) { return must(retraced<T>::of(in.get<T>(), id)); }
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoCaller,
                         ::testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(SimpoCaller, ARepeatedCallIsNotMadeAgainAndAnswersTheSame) {
    in.open();
    in.make<digits>(for_three);
    auto me = by<digits>(7);
    EXPECT_EQ(*me.last(), 0U);
    EXPECT_EQ(*me.call<&digits::append_and_get>(1, 1U), 1U);
    EXPECT_EQ(*me.call<&digits::append_and_get>(2, 2U), 12U);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(*me.call<&digits::append_and_get>(2, 2U), 12U);
        EXPECT_EQ(*me.call<&digits::append_and_get>(1, 1U), 1U);
    }
    me.defer<&digits::append>(3, 3);
    me.defer<&digits::append>(3, 3); // pending still
    EXPECT_EQ(*me.last(), 3U);
    me.defer<&digits::append>(3, 3);
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 123U);
}

TEST_P(SimpoCaller, CrashesCheckpointsAndTruncationChangeNothing) {
    in.open();
    in.make<digits>(for_three);
    u64 number = 0, sum = 0, answered = 0;
    for (unsigned i = 0; i < 200; ++i) {
        auto me = by<digits>(7);
        ++number;
        for (unsigned repeated = 0; repeated < 3; ++repeated) {
            const auto got = me.call<&digits::append_and_get>(number, 1U);
            ASSERT_TRUE(got) << got.error().what();
            if (repeated == 0) answered = *got;
            EXPECT_EQ(*got, answered);
            if ((i + repeated) % 3 == 0) in.get<digits>().checkpoint();
            if ((i + repeated) % 4 == 1) in.crash(), me = by<digits>(7);
            if (i % 50 == 7) in.open(), me = by<digits>(7); // a clean close
        }
        ++sum;
        for (unsigned n = 0; n < 40 * (i % 5 == 0); ++n)
            me.defer<&digits::append>(++number, 1), ++sum;
        ASSERT_EQ(*me.last(), number);
        me.defer<&digits::append>(number, 5);
        ASSERT_TRUE(in.get<digits>().call<&digits::sums_to>(sum)) << i;
    }
}

TEST_P(SimpoCaller, WhatWasDeferredAndLostIsMadeWhenItIsRepeated) {
    in.open();
    in.make<digits>(for_three);
    auto me = by<digits>(7);
    me.defer<&digits::append>(1, 1);
    in.get<digits>().sync();
    me.defer<&digits::append>(2, 2);
    in.crash();
    me = by<digits>(7);
    EXPECT_EQ(*me.last(), 1U);
    me.defer<&digits::append>(1, 1);
    me.defer<&digits::append>(2, 2);
    EXPECT_EQ(*me.call<&digits::append_and_get>(3, 3U), 123U);
}

TEST_P(SimpoCaller, ResultsOfEachSizeAreKept) {
    in.open();
    in.make<purse>(for_three);
    auto me = by<purse>(1);
    me.defer<&purse::put>(1, u64{300});
    for (int i = 0; i < 2; ++i) {
        const auto got = must(me.call<&purse::take>(2, u64{40}));
        EXPECT_EQ(got.taken, 40U);
        EXPECT_EQ(got.left, 260U);
        in.crash();
        me = by<purse>(1);
    }
    EXPECT_EQ(*me.call<&purse::low>(3), 4U); // a const function of a caller is logged
    EXPECT_TRUE(me.call<&purse::empty>(4).ok());
    in.crash();
    me = by<purse>(1);
    EXPECT_EQ(*me.call<&purse::low>(3), 4U);
    EXPECT_TRUE(me.call<&purse::empty>(4).ok());
    EXPECT_EQ(in.get<purse>().call<&purse::has>(), 0U);
}

TEST_P(SimpoCaller, RefusalsSayWhatIsWrongAndLogNothing) {
    in.open();
    auto none = *object<purse>::create(in.pool(), "none");
    EXPECT_EQ(caller<purse>::of(none, 1).error().code(), errc::limit_reached);
    auto it = in.make<purse>(for_three);
    EXPECT_EQ(caller<purse>::of(it, 0).error().code(), errc::bad_argument);
    auto me = by<purse>(1);
    for (const u64 id : {2, 3}) EXPECT_TRUE(caller<purse>::of(it, id));
    EXPECT_EQ(caller<purse>::of(it, 4).error().code(), errc::limit_reached);
    const position before = it.internals().log().head();
    EXPECT_EQ(me.call<&purse::wide>(1).error().code(), errc::bad_argument);
    EXPECT_EQ(it.internals().log().head(), before);
    EXPECT_TRUE(me.call<&purse::take>(2, u64{1}));
    EXPECT_EQ(me.call<&purse::take>(2, u64{2}).error().code(), errc::bad_argument);
    EXPECT_EQ(me.call<&purse::has>(2).error().code(), errc::bad_argument);
    EXPECT_EQ(me.call<&purse::take>(1, u64{1}).error().code(), errc::not_found); // never came
    for (const u64 number : {3, 4}) EXPECT_TRUE(me.call<&purse::take>(number, u64{1}));
    EXPECT_EQ(me.call<&purse::take>(2, u64{1}).error().code(), errc::not_found); // two are kept
    EXPECT_EQ(caller<purse>::dismiss(it, 9).code(), errc::not_found);
    EXPECT_TRUE(caller<purse>::dismiss(it, 1).ok());
    EXPECT_EQ(me.last().error().code(), errc::not_found);
    EXPECT_EQ(me.call<&purse::take>(9, u64{1}).error().code(), errc::not_found);
    in.crash();
    EXPECT_EQ(*by<purse>(4).last(), 0U); // in the place of the first
    for (const object_options& wrong :
         {object_options{.callers = 70'000}, object_options{.callers = 1, .results = 0},
          object_options{.callers = 1, .results = 1U << 25},
          object_options{.callers = 1, .result_bytes = 600},
          object_options{.callers = 65'535, .results = 1U << 24, .result_bytes = 512}})
        EXPECT_EQ(object<purse>::create(in.pool(), "wrong", wrong).error().code(),
                  errc::bad_argument);
}

/// Another thread's durable_together commits what this thread has logged, and only orders it: a
/// thread that asks then waits. In mode power a kill takes calls that no thread has waited for.
TEST_P(SimpoCaller, WhatAGroupOfAnotherThreadHasCommittedIsDurableWhenItIsAskedFor) {
    using asked = object<digits>;
    using one = caller<digits>; // known without a question: asking for one would wait, too
    const std::function<void(asked, one)> asks[] = {
        [](asked on, one) { on.sync(); },
        [](asked on, one) { (void)on.call<&digits::number>(); },
        [](asked on, one) { on.checkpoint(); },
        [](asked, one seven) { (void)seven.last(); },
        [](asked, one seven) { (void)seven.call<&digits::append_and_get>(1, 1U); },
        [](asked on, one) { must(one::of(on, 8)); },
        [](asked on, one) { EXPECT_EQ(one::dismiss(on, 9).code(), errc::not_found); },
    };
    in.open();
    in.make<digits>(for_three);
    by<digits>(7);
    in.close();
    u64 number = 0;
    for (const auto& ask : asks) {
        const pid_t child = ::fork();
        if (child == 0) {
            in.open();
            auto on = in.get<digits>();
            std::thread logs([&] { on.defer<&digits::append>(3); });
            logs.join();
            const durable_together all(in.pool());
            auto seven = must(one::of(on, 7));
            (void)seven.call<&digits::append_and_get>(1, 1U);
            must(one::of(on, 8));
            std::thread([&] { ask(on, seven), ::kill(::getpid(), SIGKILL); }).join();
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        in.open();
        const u64 expected = number == 0 ? 31 : number * 10 + 3;
        number = in.get<digits>().call<&digits::number>();
        EXPECT_EQ(number, expected) << "question " << &ask - asks;
        in.close();
    }
}

TEST_P(SimpoCaller, EachOfManyThreadsIsHeardOnce) {
    constexpr u64 threads = 4, calls = 300;
    in.open();
    in.make<digits>(object_options{.log_bytes = 4_KiB, .callers = threads});
    std::vector<std::thread> all;
    for (u64 t = 1; t <= threads; ++t)
        all.emplace_back([&, t] {
            auto me = by<digits>(t);
            for (u64 n = 1; n <= calls; ++n)
                for (int repeated = 0; repeated < 2; ++repeated) {
                    if (n % 3 == 0) EXPECT_TRUE(me.call<&digits::append_and_get>(n, 1U));
                    else me.defer<&digits::append>(n, 1U);
                }
        });
    for (std::thread& each : all) each.join();
    EXPECT_TRUE(in.get<digits>().call<&digits::sums_to>(threads * calls));
    in.crash();
    EXPECT_TRUE(in.get<digits>().call<&digits::sums_to>(threads * calls));
    for (u64 t = 1; t <= threads; ++t) EXPECT_EQ(*by<digits>(t).last(), calls);
}

/// A deterministic program of one thread, up to a number of its calls; what it learned.
u64 program(retraced<digits> it, u64 identity, unsigned calls) {
    u64 learned = identity;
    for (unsigned i = 0; i < calls; ++i) {
        const auto digit = static_cast<std::uint32_t>(learned % 9);
        if (i % 3 != 2) it.defer<&digits::append>(digit);
        else if (i % 2 == 0) learned = learned * 31 + must(it.call<&digits::append_and_get>(digit));
        else learned = learned * 31 + must(it.call<&digits::count>());
    }
    return learned;
}

constexpr object_options for_a_program{
    .log_bytes = 1_KiB, .callers = 2, .results = 40, .result_bytes = 8};

TEST_P(SimpoCaller, AProgramThatIsRunAgainEndsAsIfNothingHadBeen) {
    constexpr unsigned calls = 90;
    in.open();
    in.make<digits>(for_a_program);
    const u64 learned = program(again<digits>(1), 1, calls);
    const u64 number = in.get<digits>().call<&digits::number>();
    for (unsigned stop = 0; stop < calls; stop += 7) {
        ASSERT_TRUE(object<digits>::destroy(in.pool(), "it").ok());
        in.make<digits>(for_a_program);
        (void)program(again<digits>(1), 1, stop);
        in.crash();
        (void)program(again<digits>(1), 1, (stop * 5) % calls); // cut short itself
        if (stop % 2 == 0) in.get<digits>().checkpoint();
        in.crash();
        EXPECT_EQ(program(again<digits>(1), 1, calls), learned) << stop;
        EXPECT_EQ(in.get<digits>().call<&digits::number>(), number) << stop;
        EXPECT_EQ(program(again<digits>(1), 1, calls), learned); // the whole of it from the log
        EXPECT_TRUE(retraced<digits>::end(in.get<digits>(), 1).ok());
    }
}

TEST_P(SimpoCaller, AnswersThatOtherThreadsHadAPartInComeFromTheLog) {
    in.open();
    in.make<digits>(for_a_program);
    auto one = again<digits>(1), two = again<digits>(2);
    one.defer<&digits::append>(1U);
    EXPECT_EQ(*two.call<&digits::append_and_get>(2U), 12U);
    EXPECT_EQ(*one.call<&digits::number>(), 12U);
    two.defer<&digits::append>(3U);
    two.defer<&digits::append>(4U);
    EXPECT_EQ(*one.call<&digits::number>(), 1234U);
    two.defer<&digits::append>(5U); // lost
    in.crash();
    one = again<digits>(1), two = again<digits>(2);
    one.defer<&digits::append>(1U);
    EXPECT_FALSE(one.caught_up());
    EXPECT_EQ(*one.call<&digits::number>(), 12U);
    EXPECT_EQ(*one.call<&digits::number>(), 1234U);
    EXPECT_TRUE(one.caught_up());
    EXPECT_EQ(*two.call<&digits::append_and_get>(2U), 12U);
    for (const unsigned digit : {3U, 4U, 5U}) two.defer<&digits::append>(digit);
    EXPECT_EQ(*one.call<&digits::number>(), 12345U);
}

TEST_P(SimpoCaller, AProgramThatIsAnotherOneOrTooLongIsRefused) {
    in.open();
    in.make<digits>(for_a_program);
    auto one = again<digits>(1);
    for (unsigned i = 0; i < for_a_program.results; ++i)
        EXPECT_TRUE(one.call<&digits::append_and_get>(1U));
    const position before = in.get<digits>().internals().log().head();
    EXPECT_EQ(one.call<&digits::append_and_get>(1U).error().code(), errc::limit_reached);
    EXPECT_EQ(in.get<digits>().internals().log().head(), before);
    in.crash();
    one = again<digits>(1);
    EXPECT_EQ(*one.call<&digits::append_and_get>(1U), 1U);
    EXPECT_EQ(one.call<&digits::append_and_get>(2U).error().code(), errc::bad_argument);
    EXPECT_EQ(one.call<&digits::number>().error().code(), errc::bad_argument);
}

} // namespace
} // namespace hf::simpo
