// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the lock excludes, also where one thread enters without a locked instruction.
// Method: threads that enter often enough in a row to get the bias, and others that take it away.
#include <base/writer_lock.hpp>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hf {
namespace {

TEST(WriterLock, OneThreadAtATimeIsInside) {
    writer_lock lock;
    constexpr int entries = 20'000, threads = 3;
    int inside = 0; // of no atomic type: the lock protects it
    const auto enter = [&](int thread) {
        for (int i = 0; i < entries; ++i) {
            const bool tries = (i / 64 + thread) % 2 == 0;
            if (tries)
                while (!lock.try_lock()) ::sched_yield();
            else lock.lock();
            ++inside;
            lock.unlock();
        }
    };
    std::vector<std::thread> all;
    for (int thread = 0; thread < threads; ++thread) all.emplace_back(enter, thread);
    for (std::thread& each : all) each.join();
    EXPECT_EQ(inside, threads * entries);
}

TEST(WriterLock, ATryFailsWhileItsUsualOwnerIsInsideAndSucceedsBehindThat) {
    writer_lock lock;
    const auto another_tries = [&] {
        bool got = false;
        std::thread([&] {
            got = lock.try_lock();
            if (got) lock.unlock();
        }).join();
        return got;
    };
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 100; ++i) { // this thread gets the bias
            lock.lock();
            lock.unlock();
        }
        lock.lock();
        EXPECT_FALSE(another_tries());
        EXPECT_FALSE(another_tries()); // the bias is gone now, and this thread still inside
        lock.unlock();
        EXPECT_TRUE(another_tries());
        EXPECT_TRUE(lock.try_lock());
        EXPECT_FALSE(another_tries());
        lock.unlock();
    }
}

} // namespace
} // namespace hf
