// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the lock-based structures are a queue, a stack, a priority queue, a map and a vector, with
// every engine and mode, with one thread and with several, and they are whole when the pool is
// opened again.
// Method: random operations with fixed seeds beside the standard library's; threads whose
// operations cancel out. A structure's own blocks, and the engine's, are all that its pool has
// allocated.
#include <structures/growing_vector.hpp>
#include <structures/list_map.hpp>
#include <structures/locked_stack.hpp>
#include <structures/sorted_list.hpp>
#include <structures/two_lock_queue.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using namespace hf::structures;
using word = std::uint64_t;

struct all {
    two_lock_queue<word> queue;
    locked_stack<word> stack;
    sorted_list<word, word> list;
    list_map<word, word, 16> map;
    growing_vector vector;

    template <class F> void for_each_block(F f) const {
        queue.for_each_block(f), stack.for_each_block(f), list.for_each_block(f);
        map.for_each_block(f), vector.for_each_block(f);
    }
    bool check() const {
        return queue.check() && stack.check() && list.check() && map.check() && vector.check();
    }
};

class LockBased : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override { open(); }
    void TearDown() override {
        EXPECT_TRUE(root()->check());
        word blocks = 0;
        root()->for_each_block([&](const void* block) {
            ++blocks;
            EXPECT_NE(hf::block_bytes(*pool_, block), 0U);
        });
        // A thread's log of engine justdo is a block, and its table is another.
        const word own = hf::account(*pool_).blocks - blocks - 1;
        EXPECT_TRUE(resumes_sections() ? own >= 2 && own <= 8 : own == 0) << own;
        pool_.reset();
        ::unlink(path_.c_str());
    }
    void open() {
        pool_.reset();
        open_options o;
        o.layout = "lock_based_test/1";
        o.mode = GetParam();
        o.engines = engines_of_build();
        auto opened = pool::open(path_, o);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::abort();
        pool_ = std::make_unique<pool>(std::move(*opened));
    }
    all* root() { return pool_->root<all>(); }
    template <class F> void in_threads(unsigned count, F f) {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < count; ++t) threads.emplace_back([&f, t] { f(t); });
        for (auto& t : threads) t.join();
    }

    const std::string path_ = "/dev/shm/hf_lock_based_test." + std::to_string(::getpid());
    std::unique_ptr<pool> pool_;
};

TEST_P(LockBased, AQueueIsFirstInFirstOut) {
    std::mt19937_64 random(1);
    std::vector<word> model;
    word taken = 0, put = 0;
    for (int i = 0; i < 3000; ++i) {
        if (i == 1500) open();
        if (random() % 2 == 0) {
            ASSERT_TRUE(root()->queue.enqueue(++put));
        } else {
            word found = 0;
            ASSERT_EQ(root()->queue.dequeue(&found), taken < put);
            if (taken < put) ASSERT_EQ(found, ++taken);
        }
        ASSERT_EQ(root()->queue.size(), put - taken);
    }
}

TEST_P(LockBased, AQueueLosesNothingBetweenThreads) {
    all* const r = root();
    constexpr word each = 2000;
    std::atomic<word> sum{0}, count{0};
    in_threads(4, [&](unsigned t) {
        if (t < 2) {
            for (word i = 0; i < each; ++i) ASSERT_TRUE(r->queue.enqueue(t * each + i));
            return;
        }
        word last[2] = {0, 0}, found = 0; // each thread's values come in their order
        while (count < 2 * each) {
            if (!r->queue.dequeue(&found)) continue;
            ++count, sum += found;
            ASSERT_LE(last[found / each], found % each + 1);
            last[found / each] = found % each + 1;
        }
    });
    EXPECT_EQ(sum, 2 * each * (2 * each - 1) / 2);
    EXPECT_EQ(r->queue.size(), 0U);
}

TEST_P(LockBased, AStackIsLastInFirstOut) {
    std::mt19937_64 random(2);
    std::vector<word> model;
    for (int i = 0; i < 3000; ++i) {
        if (i == 1500) open();
        if (random() % 2 == 0) {
            model.push_back(random());
            ASSERT_TRUE(root()->stack.push(model.back()));
        } else {
            word found = 0;
            ASSERT_EQ(root()->stack.pop(&found), !model.empty());
            if (!model.empty()) {
                ASSERT_EQ(found, model.back());
                model.pop_back();
            }
        }
        ASSERT_EQ(root()->stack.size(), model.size());
    }
}

template <class Map> void change_beside_model(Map& map, std::map<word, word>& model, word bits) {
    const word key = bits % 50, value = bits / 64 % 1000;
    word found = 0;
    switch (bits >> 60 & 7) {
    case 0:
    case 1: ASSERT_EQ(map.erase(key), model.erase(key) != 0); break;
    case 2:
        ASSERT_EQ(map.replace(key, value), model.contains(key));
        if (model.contains(key)) model[key] = value;
        break;
    case 3:
    case 4:
        ASSERT_EQ(map.find(key, &found), model.contains(key));
        if (model.contains(key)) ASSERT_EQ(found, model[key]);
        break;
    default:
        ASSERT_TRUE(map.insert(key, value));
        model[key] = value;
        break;
    }
}

TEST_P(LockBased, MapsAreMaps) {
    std::mt19937_64 random(3);
    std::map<word, word> in_list, in_map;
    for (int i = 0; i < 3000; ++i) {
        if (i == 1500) open();
        change_beside_model(root()->list, in_list, random());
        change_beside_model(root()->map, in_map, random());
        word key = 0, value = 0;
        if (i % 7 == 0) {
            ASSERT_EQ(root()->list.remove_min(&key, &value), !in_list.empty());
            if (!in_list.empty()) {
                ASSERT_EQ(key, in_list.begin()->first);
                ASSERT_EQ(value, in_list.begin()->second);
                in_list.erase(in_list.begin());
            }
        }
    }
    std::map<word, word> found;
    root()->map.for_each([&](word key, word value) { found[key] = value; });
    EXPECT_EQ(found, in_map);
    EXPECT_EQ(root()->list.size(), in_list.size());
}

TEST_P(LockBased, ThreadsInOneListKeepOutOfEachOthersWay) {
    all* const r = root();
    constexpr word threads = 4;
    std::atomic<word> there{0};
    in_threads(threads, [&](unsigned t) {
        std::mt19937_64 random(t);
        for (word i = 0; i < 1000; ++i) {
            const word mine = random() % 40 * threads + t; // this thread alone changes it
            const bool was = r->list.find(mine, nullptr);
            if (random() % 3 != 0) {
                ASSERT_TRUE(r->list.insert(mine, i));
                there += was ? 0 : 1;
                word found = 0;
                ASSERT_TRUE(r->list.find(mine, &found));
                ASSERT_EQ(found, i);
            } else {
                ASSERT_EQ(r->list.erase(mine), was);
                there -= was ? 1 : 0;
            }
        }
    });
    EXPECT_EQ(r->list.size(), there);
    std::atomic<word> taken{0};
    in_threads(threads, [&](unsigned) {
        word key = 0, value = 0;
        for (word last = 0; r->list.remove_min(&key, &value); last = key, ++taken)
            ASSERT_GE(key, last);
    });
    EXPECT_EQ(taken, there);
}

/// The object has its locks in it, and a lock that was taken does not read as before.
TEST_P(LockBased, AVectorsElementIsChangedWithoutALockWhereSectionsEnd) {
    auto* const vector = &root()->vector;
    ASSERT_TRUE(vector->push_back(1));
    const auto bytes = [&] {
        return std::string(reinterpret_cast<const char*>(vector), sizeof *vector);
    };
    const std::string before = bytes();
    ASSERT_TRUE(vector->set(0, 2));
    EXPECT_EQ(bytes() == before, ends_what_it_began);
}

TEST_P(LockBased, AVectorIsReadAndChangedWhileItGrows) {
    all* const r = root();
    constexpr word upto = 3000;
    std::atomic<bool> grown{false};
    in_threads(4, [&](unsigned t) {
        if (t == 0) {
            for (word i = 0; i < upto; ++i) ASSERT_TRUE(r->vector.push_back(i << 8));
            grown = true;
            return;
        }
        std::mt19937_64 random(t);
        while (!grown) {
            const word i = random() % upto;
            word found = 0;
            if (t == 1) {
                r->vector.set(i, i << 8 | (random() & 0xff));
            } else if (r->vector.get(i, &found)) {
                ASSERT_EQ(found >> 8,
                          i); // never a part of an element, nor one that is not there yet
            }
        }
    });
    open();
    EXPECT_EQ(root()->vector.size(), upto);
    word i = 0;
    root()->vector.for_each([&](word found) { EXPECT_EQ(found >> 8, i++); });
}

INSTANTIATE_TEST_SUITE_P(Modes, LockBased, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) {
                             return which.param == mode::process ? "process" : "pmem";
                         });

} // namespace
