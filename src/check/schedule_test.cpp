// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a schedule determines the runs of several threads, and the acknowledged operations
// determine the legal states at each moment. Method: small runs whose every step is known.
#include <check/guard.hpp>
#include <check/history.hpp>
#include <check/recorder.hpp>
#include <check/schedule.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/trace_abi.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <pthread.h>
#include <string>
#include <thread>

namespace {

using namespace hf::check;

/// Two threads of three points each, written down as they pass them.
std::string run_of(turn_takers& threads, const schedule& by) {
    std::string passed;
    threads.run(
        by,
        [&](unsigned t) {
            for (int i = 0; i < 3; ++i) {
                turn_takers::point();
                passed += static_cast<char>('a' + t);
            }
        },
        [](unsigned) {});
    return passed;
}

TEST(Schedule, TurnsChangeWhereItSaysAndAtTheEnd) {
    turn_takers threads(2);
    EXPECT_EQ(run_of(threads, {0, {}}), "aaabbb");
    EXPECT_EQ(run_of(threads, {1, {}}), "bbbaaa");
    EXPECT_EQ(run_of(threads, {0, {1}}), "abbbaa");
    EXPECT_EQ(run_of(threads, {0, {0, 2}}), "baaabb");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(run_of(threads, {0, {0, 2}}), "baaabb");
}

TEST(Schedule, AThreadThatWaitsForALockGivesItsTurnUp) {
    turn_takers threads(2);
    std::mutex lock;
    std::string passed;
    threads.run(
        {0, {0}},
        [&](unsigned t) {
            const std::scoped_lock held{lock};
            passed += static_cast<char>('a' + t);
            turn_takers::point(); // thread 0 loses the turn here, holding the lock
            passed += static_cast<char>('a' + t);
        },
        [](unsigned) {});
    EXPECT_EQ(passed, "aabb");
}

TEST(Schedule, TheClockMayTickBeforeAThreadHasStarted) {
    const pthread_t here = pthread_self();
    std::atomic<bool> done{false}, runs{false};
    std::thread clock([&] {
        for (; !done; std::this_thread::sleep_for(std::chrono::microseconds(20)))
            if (runs) pthread_kill(here, SIGALRM);
    });
    const std::string died = run_guarded(1e6, [&] {
        for (int i = 0; i < 200; ++i) {
            turn_takers threads(2);
            runs = true;
            EXPECT_EQ(run_of(threads, {0, {1}}), "abbbaa");
            runs = false;
        }
    });
    done = true;
    clock.join();
    EXPECT_EQ(died, "");
}

TEST(History, EveryOrderOnce) {
    EXPECT_EQ(all_orders({1}).size(), 2U);
    EXPECT_EQ(all_orders({1, 1}).size(), 5U); // none, a, b, ab, ba
    EXPECT_EQ(all_orders({2, 1}).size(), 9U); // and aa, aab, aba, baa
}

TEST(History, AcknowledgedOperationsAreInPendingOnesMayBe) {
    std::map<operation_order, outcome> states;
    for (const operation_order& o : all_orders({1, 1})) {
        outcome s = 1;
        for (const unsigned t : o) s = s * 10 + t + 2; // 1, 12, 13, 123, 132
        states[o] = s;
    }
    history past(states);
    EXPECT_EQ(past.legal(), legal_set{1});
    past.began(0);
    EXPECT_EQ(past.legal(), (legal_set{1, 12}));
    past.began(1);
    EXPECT_EQ(past.legal(), (legal_set{1, 12, 13, 123, 132}));
    past.acknowledged(0);
    EXPECT_EQ(past.legal(), (legal_set{12, 123, 132}));
    past.acknowledged(1);
    EXPECT_EQ(past.legal(), (legal_set{123, 132}));
}

TEST(History, AnOperationThatBeganLaterTakesEffectLater) {
    std::map<operation_order, outcome> states;
    outcome next = 1;
    for (const operation_order& o : all_orders({1, 1})) states[o] = next++;
    history past(states);
    past.began(0);
    past.acknowledged(0);
    past.began(1);
    EXPECT_EQ(past.legal(), (legal_set{states[{0}], states[{0, 1}]}));
}

TEST(History, OnlyTheLastOperationOfAThreadMayBeLostAndOnlyIfItIsBuffered) {
    std::map<operation_order, outcome> states; // of one thread: how many operations
    for (const operation_order& o : all_orders({3})) states[o] = o.size();
    history past(states);
    past.began(0);
    past.acknowledged(0, true);
    EXPECT_EQ(past.legal(), (legal_set{0, 1}));
    past.began(0);
    EXPECT_EQ(past.legal(), (legal_set{0, 1, 2}));
    past.acknowledged(0, true);
    EXPECT_EQ(past.legal(), (legal_set{1, 2}));
    past.began(0);
    past.acknowledged(0); // durable, with all before it
    EXPECT_EQ(past.legal(), legal_set{3});
}

TEST(History, WhatIsSettledIsNotLost) {
    std::map<operation_order, outcome> states;
    for (const operation_order& o : all_orders({1})) states[o] = o.size();
    history past(states);
    past.began(0);
    past.acknowledged(0, true);
    past.settled();
    EXPECT_EQ(past.legal(), legal_set{1});
}

TEST(Recorder, FindsAStoreThatNobodyReported) {
    alignas(64) static std::uint64_t memory[32] = {};
    const auto bytes = std::as_writable_bytes(std::span(memory));
    recorder record(bytes);
    const watch watching(bytes.data(), bytes.size(), record);
    memory[3] = 1;
    hf_trace_store(&memory[3], 8);
    hf::trace::announce(hf::trace::fence, nullptr, 0);
    EXPECT_EQ(record.unreported(), ~std::size_t{0});
    memory[17] = 1;
    hf::trace::announce(hf::trace::fence, nullptr, 0);
    EXPECT_EQ(record.unreported(), 17U * 8);
}

} // namespace
