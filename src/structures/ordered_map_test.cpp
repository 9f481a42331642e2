// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The suite of all ordered structures: ordered_map_test.hpp.
#include <structures/ordered_map_test.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>

namespace hf::structures::test {

/// For the name that ctest gives a test: the bytes of a configuration are addresses.
static void PrintTo(const configuration& of, std::ostream* to) { *to << of.name; }

namespace {

using namespace hf::literals;

value value_of(std::uint64_t seed) {
    value made;
    for (std::uint64_t& word : made.words)
        word = seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return made;
}

using model = std::map<std::uint64_t, std::uint64_t>; // a key's number -> seed of its value

class ordered_map_test : public testing::TestWithParam<configuration> {
protected:
    void SetUp() override {
        char directory[] = "/dev/shm/ordered_map_test.XXXXXX";
        ASSERT_NE(mkdtemp(directory), nullptr);
        directory_ = directory;
        path_ = directory_ + "/map.hf";
    }
    void TearDown() override {
        pool_.reset();
        std::remove(path_.c_str());
        rmdir(directory_.c_str());
    }
    void open(std::uint64_t create_bytes = 16_MiB, std::uint64_t max_bytes = 1_GiB) {
        pool_.reset();
        hf::open_options options;
        options.layout = "ordered_map_test/1";
        options.create_bytes = create_bytes;
        options.max_bytes = max_bytes;
        options.mode = GetParam().mode;
        options.engines = GetParam().engines;
        auto opened = hf::pool::open(path_, options);
        ASSERT_TRUE(opened) << opened.error().what();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
        map_ = GetParam().root(*pool_);
    }
    any_map& map() { return *map_; }
    bool insert(std::uint64_t number, std::uint64_t seed) {
        return map_->insert(number, value_of(seed));
    }

    /// Inserts in both.
    void insert_too(model& expected, std::uint64_t number, std::uint64_t seed) {
        ASSERT_TRUE(insert(number, seed));
        expected[number] = seed;
    }

    void expect_same(const model& expected) {
        ASSERT_TRUE(map_->check());
        ASSERT_EQ(map_->size(), expected.size());
        auto next = expected.begin();
        map_->for_each([&](std::uint64_t number, const value& found) {
            ASSERT_NE(next, expected.end());
            ASSERT_EQ(number, next->first);
            ASSERT_EQ(found, value_of(next->second));
            ++next;
        });
        ASSERT_EQ(next, expected.end());
        expect_no_leak();
    }

    /// Engine justdo keeps its logs in blocks (docs/format/justdo.md).
    static bool is_of_engine(const void* block, std::size_t bytes) {
        const auto* text = static_cast<const char*>(block);
        return GetParam().resumes && bytes >= 128 &&
               (std::memcmp(text, "HFSTJDO1", 8) == 0 ||
                std::memcmp(text + 64, "JDTHREAD", 8) == 0);
    }

    /// The pool has allocated the root and the structure's own blocks, each once, and nothing else.
    void expect_no_leak() {
        std::vector<const void*> allocated;
        hf::for_each_block(
            *pool_,
            [](void* to, const void* block, std::size_t bytes) {
                if (!is_of_engine(block, bytes))
                    static_cast<std::vector<const void*>*>(to)->push_back(block);
            },
            &allocated);
        std::vector<const void*> owned = map_->blocks();
        std::ranges::sort(allocated);
        std::ranges::sort(owned);
        ASSERT_EQ(owned, allocated);
    }

    void expect_range(const model& expected, std::uint64_t from, std::uint64_t count) {
        auto next = expected.lower_bound(from);
        std::uint64_t seen = 0;
        const std::uint64_t visited = map_->range(from, [&](std::uint64_t number, const value& v) {
            EXPECT_NE(next, expected.end());
            if (next == expected.end()) return false;
            EXPECT_EQ(number, next->first);
            EXPECT_EQ(v, value_of(next->second));
            ++next;
            return ++seen < count;
        });
        ASSERT_EQ(visited, seen);
        if (seen < count) ASSERT_EQ(next, expected.end());
    }

    void random_operations(model& expected, std::uint64_t seed, int count, std::uint64_t keys,
                           unsigned erasures_of_10) {
        std::mt19937_64 random(seed);
        for (int i = 0; i < count; ++i) {
            const std::uint64_t number = random() % keys;
            const std::uint64_t version = random();
            const auto known = expected.find(number);
            const std::uint64_t what = random() % 10;
            value found;
            if (what < erasures_of_10) {
                ASSERT_EQ(map_->erase(number), known != expected.end()) << "seed " << seed;
                expected.erase(number);
            } else if (what < 8) {
                insert_too(expected, number, version);
            } else if (what == 8) {
                ASSERT_EQ(map_->find(number, &found), known != expected.end()) << "seed " << seed;
                if (known != expected.end()) ASSERT_EQ(found, value_of(known->second));
            } else {
                expect_range(expected, number, 1 + version % 40);
            }
            if (testing::Test::HasFatalFailure()) return;
        }
    }

private:
    std::string directory_;
    std::string path_;
    std::unique_ptr<hf::pool> pool_;
    std::unique_ptr<any_map> map_;
};

TEST_P(ordered_map_test, IsEmptyWhenItsPoolIsNew) {
    open();
    expect_same({});
    EXPECT_FALSE(map().find(1, nullptr));
    EXPECT_FALSE(map().erase(1));
    expect_range({}, 0, 5);
}

TEST_P(ordered_map_test, AgreesWithAStandardMap) {
    open();
    model expected;
    for (const std::uint64_t keys : {40u, 800u, 20000u}) {
        random_operations(expected, keys, 12000, keys, 3); // grows
        expect_same(expected);
        random_operations(expected, keys + 1, 6000, keys, 7); // shrinks
        expect_same(expected);
    }
}

TEST_P(ordered_map_test, TakesAndGivesKeysInAnyOrder) {
    constexpr std::uint64_t count = 2000;
    const auto ascending = [](std::uint64_t i) { return i; };
    const auto descending = [](std::uint64_t i) { return count - 1 - i; };
    const auto from_both_ends = [](std::uint64_t i) {
        return i % 2 == 0 ? i / 2 : count - 1 - i / 2;
    };
    const auto in_strides = [](std::uint64_t i) { return i * 37 % count; };
    using order = std::uint64_t (*)(std::uint64_t);
    open();
    for (const order coming :
         {order{ascending}, order{descending}, order{from_both_ends}, order{in_strides}})
        for (const order going : {order{ascending}, order{descending}, order{in_strides}}) {
            model expected;
            for (std::uint64_t i = 0; i < count; ++i) {
                insert_too(expected, coming(i), i);
                if (i % 3 == 0) insert_too(expected, coming(i), i + 1);
            }
            expect_same(expected);
            for (std::uint64_t i = 0; i < count; ++i) {
                ASSERT_TRUE(map().erase(going(i)));
                ASSERT_FALSE(map().erase(going(i)));
                expected.erase(going(i));
                if (i % 500 == 0) expect_same(expected);
            }
            expect_same({});
            if (HasFatalFailure()) return;
        }
}

TEST_P(ordered_map_test, FindsRangesFromKeysThatAreThereOrNot) {
    open();
    model expected;
    std::mt19937_64 random(5);
    for (int i = 0; i < 3000; ++i) insert_too(expected, 10 + random() % 100000 * 2, i);
    for (int i = 0; i < 1000; ++i) {
        expect_range(expected, random() % 200100, 1 + random() % 100);
        if (HasFatalFailure()) return;
    }
    expect_range(expected, 0, expected.size() + 1);
    expect_range(expected, expected.rbegin()->first, 5);
    expect_range(expected, expected.rbegin()->first + 1, 5);
}

TEST_P(ordered_map_test, IsThereAgainAfterReopening) {
    model expected;
    for (std::uint64_t round = 0; round < 4; ++round) {
        open();
        expect_same(expected);
        random_operations(expected, 100 + round, 4000, 3000, 3);
    }
}

TEST_P(ordered_map_test, IsUnchangedByAnInsertionThatFindsThePoolFull) {
    open(2_MiB, 4_MiB);
    model expected;
    std::mt19937_64 random(9);
    unsigned failures = 0;
    for (int i = 0; i < 100000 && failures < 20; ++i) {
        const std::uint64_t number = random() % 1000000;
        const bool known = expected.contains(number);
        if (insert(number, number)) {
            expected[number] = number;
            continue;
        }
        ASSERT_FALSE(known) << "an assignment needs no room";
        if (++failures == 1) expect_same(expected);
    }
    ASSERT_EQ(failures, 20u) << "the pool never ran full";
    ASSERT_GT(expected.size(), 1000u);
    expect_same(expected);
    const std::uint64_t first = expected.begin()->first;
    insert_too(expected, first, 77);
    // Room again where keys were: half of the old ones go, new ones between them come.
    std::vector<std::uint64_t> gone;
    for (const auto& one : expected)
        if (gone.size() < expected.size() / 2) gone.push_back(one.first);
    for (const std::uint64_t number : gone) {
        ASSERT_TRUE(map().erase(number));
        expected.erase(number);
    }
    expect_same(expected);
    for (std::size_t i = 0; i < gone.size() / 4; ++i) insert_too(expected, gone[4 * i] + 1, i);
    expect_same(expected);
    open(2_MiB, 4_MiB);
    expect_same(expected);
}

TEST_P(ordered_map_test, ReusesWhatErasuresFreed) {
    open(3_MiB, 3_MiB);
    for (std::uint64_t round = 0; round < 12; ++round) { // more in all than there is room for
        model expected;
        for (std::uint64_t i = 0; i < 2000; ++i)
            insert_too(expected, (i * 7919 + round * 31) % 5000, i);
        expect_same(expected);
        for (const auto& one : expected) ASSERT_TRUE(map().erase(one.first));
        expect_same({});
        if (HasFatalFailure()) return;
    }
}

TEST_P(ordered_map_test, ServesSeveralThreads) {
    open();
    constexpr std::uint64_t threads = 4;
    constexpr std::uint64_t keys_each = 1500;
    std::array<model, threads> expected;
    std::vector<std::thread> running;
    for (std::uint64_t t = 0; t < threads; ++t)
        running.emplace_back([this, t, &mine = expected[t]] {
            std::mt19937_64 random(t);
            for (int i = 0; i < 8000; ++i) { // own keys, everybody's nodes
                const std::uint64_t number = random() % keys_each * threads + t;
                const std::uint64_t version = random();
                // Phases, so that nodes empty and merge as often as they fill and split.
                if (version % 8 < (i / 1000 % 2 == 0 ? 1u : 5u)) {
                    EXPECT_EQ(map().erase(number), mine.erase(number) == 1);
                } else {
                    EXPECT_TRUE(insert(number, version));
                    mine[number] = version;
                }
                value found;
                const std::uint64_t other = random() % (keys_each * threads);
                const bool present = map().find(other, &found);
                if (other % threads == t) {
                    EXPECT_EQ(present, mine.contains(other));
                    if (present && mine.contains(other)) EXPECT_EQ(found, value_of(mine[other]));
                }
                if (i % 64 != 0) continue;
                std::uint64_t last = 0; // whatever others do meanwhile
                std::uint64_t seen = 0;
                map().range(other, [&](std::uint64_t at, const value&) {
                    EXPECT_GE(at, seen == 0 ? other : last + 1);
                    last = at;
                    return ++seen < 50;
                });
            }
        });
    for (std::thread& one : running) one.join();
    model all;
    for (const model& mine : expected) all.insert(mine.begin(), mine.end());
    expect_same(all);
    open();
    expect_same(all);
}

INSTANTIATE_TEST_SUITE_P(, ordered_map_test, testing::ValuesIn(configurations()),
                         [](const auto& given) { return given.param.name; });

} // namespace
} // namespace hf::structures::test
