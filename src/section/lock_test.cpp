// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: pool locks exclude as they say. Method: threads count under them; odd counts would show.
#include <holdfast/lock.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <shared_mutex>
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

} // namespace
