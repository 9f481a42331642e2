// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: pool locks exclude as they say. Method: threads count under them; odd counts would show.
// Goal: threads that wait for each other say where. Method: two take two locks in different orders.
#include <section/lock_wait.hpp>

#include <holdfast/lock.hpp>
#include <holdfast/log.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

TEST(Lock, WritersExcludeEachOtherAndReaders) {
    alignas(64) static unsigned char memory[sizeof(hf::shared_mutex)] = {};
    auto& lock = *reinterpret_cast<hf::shared_mutex*>(memory); // a zero-filled lock is free
    std::uint64_t a = 0, b = 0;
    std::atomic<std::uint64_t> torn{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                if (i % 3 == 0) {
                    std::scoped_lock held{lock};
                    ++a;
                    ++b;
                } else {
                    std::shared_lock held{lock};
                    if (a != b) ++torn;
                }
            }
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(torn.load(), 0U);
    EXPECT_EQ(a, 3U * 6667U);
}

TEST(Lock, TryLockFailsWhileHeld) {
    hf::shared_mutex lock{};
    lock.lock_shared();
    EXPECT_FALSE(lock.try_lock());
    EXPECT_TRUE(lock.try_lock_shared());
    lock.unlock_shared();
    lock.unlock_shared();
    EXPECT_TRUE(lock.try_lock());
    EXPECT_FALSE(lock.try_lock_shared());
    lock.unlock();
}

struct lines {
    std::mutex held;
    std::vector<std::string> all;
    std::size_t count() {
        const std::scoped_lock here{held};
        return all.size();
    }
};

__attribute__((noinline)) void waits_for(hf::shared_mutex& lock) {
    lock.lock();
    lock.unlock();
    asm volatile(""); // no tail call: it is named
}

TEST(Lock, ThreadsThatWaitForEachOtherSayWhere) {
    static lines said;
    hf::set_log(
        [](void*, hf::severity level, const char* line) {
            EXPECT_EQ(level, hf::severity::warning);
            const std::scoped_lock here{said.held};
            said.all.push_back(line);
        },
        nullptr);
    hf::lock_wait_ms_max = 20;
    static hf::shared_mutex locks[2]{}; // static: a failure leaves the threads waiting
    static std::latch both{2};
    static std::atomic<bool> ends{false};
    std::thread first([] {
        locks[0].lock();
        both.arrive_and_wait();
        // What a deadlock would be: it is waited for, and ends when both have said so.
        while (!ends && !locks[1].try_lock()) std::this_thread::yield();
        if (!ends) locks[1].unlock();
        locks[0].unlock();
    });
    std::thread second([] {
        locks[1].lock();
        both.arrive_and_wait();
        waits_for(locks[0]);
        locks[1].unlock();
    });
    for (int i = 0; i < 6000 && said.count() == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ends = true;
    first.join();
    second.join();
    hf::set_log(nullptr);
    hf::lock_wait_ms_max = 10'000;
    ASSERT_EQ(said.all.size(), 1U);
    for (const char* part :
         {"is waited for since 20 ms", "a writer has it", "waits_for", "in one order"})
        EXPECT_NE(said.all[0].find(part), std::string::npos) << said.all[0];
}

} // namespace
