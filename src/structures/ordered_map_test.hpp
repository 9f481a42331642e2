// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: every ordered structure is a map, whatever the engine, the mode and the kind of key, while
// nothing crashes. Crashes are the business of the crash programs.
// Method: one suite beside std::map, random operations with fixed seeds, keys in awkward orders,
// several threads, pools that run full; after each, what the structure owns is all that its pool
// has allocated. A test file names its structure and instantiates:
//
//     struct tree { template <class Key, class Value> using map = hf::structures::tree<Key,
//     Value>; }; INSTANTIATE_TYPED_TEST_SUITE_P(tree, ordered_map_test,
//                                    hf::structures::test::every_configuration<tree>);
#pragma once

#include <structures/bytes_key.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace hf::structures::test {

using namespace hf::literals;

struct value {
    std::array<std::uint64_t, 32> words;
    bool operator==(const value&) const = default;
};
inline value value_of(std::uint64_t seed) {
    value made;
    for (std::uint64_t& word : made.words)
        word = seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return made;
}

// Keys in the order of their numbers. Those of 32 bytes differ late, in the last of their words.
using long_key = bytes_key<32>;
inline void make_key(std::uint64_t number, std::uint64_t& key) { key = number; }
inline void make_key(std::uint64_t number, long_key& key) {
    char text[33];
    std::snprintf(text, sizeof text, "user %027llu", static_cast<unsigned long long>(number));
    std::memcpy(key.bytes, text, sizeof key.bytes);
}
inline std::uint64_t number_of(std::uint64_t key) { return key; }
inline std::uint64_t number_of(const long_key& key) {
    const std::string text(reinterpret_cast<const char*>(key.bytes), sizeof key.bytes);
    return std::stoull(text.substr(5));
}

template <class Structure, class Key, hf::mode Mode> struct configuration {
    using key = Key;
    using map = typename Structure::template map<Key, value>;
    static constexpr hf::mode mode = Mode;
};
template <class Structure>
using every_configuration = testing::Types<configuration<Structure, std::uint64_t, mode::process>,
                                           configuration<Structure, std::uint64_t, mode::pmem>,
                                           configuration<Structure, long_key, mode::pmem>>;

using model = std::map<std::uint64_t, std::uint64_t>; // a key's number -> seed of its value

template <class Configuration> class ordered_map_test : public testing::Test {
protected:
    using map = typename Configuration::map;
    using key = typename Configuration::key;

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
        options.mode = Configuration::mode;
        options.engines = engines_of_build();
        auto opened = hf::pool::open(path_, options);
        ASSERT_TRUE(opened) << opened.error().what();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
    }
    map* root() { return pool_->root<map>(); }

    static key key_of(std::uint64_t number) {
        key made;
        make_key(number, made);
        return made;
    }
    bool insert(std::uint64_t number, std::uint64_t seed) {
        return root()->insert(key_of(number), value_of(seed));
    }
    bool erase(std::uint64_t number) { return root()->erase(key_of(number)); }
    bool find(std::uint64_t number, value* found) { return root()->find(key_of(number), found); }

    /// Inserts in both.
    void insert_too(model& expected, std::uint64_t number, std::uint64_t seed) {
        ASSERT_TRUE(insert(number, seed));
        expected[number] = seed;
    }

    void expect_same(const model& expected) {
        ASSERT_TRUE(root()->check());
        ASSERT_EQ(root()->size(), expected.size());
        auto next = expected.begin();
        root()->for_each([&](const key& k, const value& found) {
            ASSERT_NE(next, expected.end());
            ASSERT_EQ(number_of(k), next->first);
            ASSERT_EQ(found, value_of(next->second));
            ++next;
        });
        ASSERT_EQ(next, expected.end());
        expect_no_leak();
    }

    /// Engine justdo keeps its logs in blocks (docs/format/justdo.md).
    static bool is_of_engine(const void* block, std::size_t bytes) {
        const auto* text = static_cast<const char*>(block);
        return resumes_sections() && bytes >= 128 &&
               (std::memcmp(text, "HFSTJDO1", 8) == 0 ||
                std::memcmp(text + 64, "JDTHREAD", 8) == 0);
    }

    /// What the pool has allocated is the root and what the structure owns, each once.
    void expect_no_leak() {
        std::vector<const void*> allocated;
        hf::for_each_block(
            *pool_,
            [](void* to, const void* block, std::size_t bytes) {
                if (!is_of_engine(block, bytes))
                    static_cast<std::vector<const void*>*>(to)->push_back(block);
            },
            &allocated);
        std::vector<const void*> owned{root()};
        root()->for_each_block([&](const void* block) { owned.push_back(block); });
        std::ranges::sort(allocated);
        std::ranges::sort(owned);
        ASSERT_EQ(owned, allocated);
    }

    void expect_range(const model& expected, std::uint64_t from, std::uint64_t count) {
        auto next = expected.lower_bound(from);
        std::uint64_t seen = 0;
        const std::uint64_t visited =
            root()->range(key_of(from), [&](const key& k, const value& v) {
                EXPECT_NE(next, expected.end());
                if (next == expected.end()) return false;
                EXPECT_EQ(number_of(k), next->first);
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
                ASSERT_EQ(erase(number), known != expected.end()) << "seed " << seed;
                expected.erase(number);
            } else if (what < 8) {
                insert_too(expected, number, version);
            } else if (what == 8) {
                ASSERT_EQ(find(number, &found), known != expected.end()) << "seed " << seed;
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
};

TYPED_TEST_SUITE_P(ordered_map_test);

TYPED_TEST_P(ordered_map_test, IsEmptyWhenItsPoolIsNew) {
    this->open();
    this->expect_same({});
    EXPECT_FALSE(this->find(1, nullptr));
    EXPECT_FALSE(this->erase(1));
    this->expect_range({}, 0, 5);
}

TYPED_TEST_P(ordered_map_test, AgreesWithAStandardMap) {
    this->open();
    model expected;
    for (const std::uint64_t keys : {40u, 800u, 20000u}) {
        this->random_operations(expected, keys, 12000, keys, 3); // grows
        this->expect_same(expected);
        this->random_operations(expected, keys + 1, 6000, keys, 7); // shrinks
        this->expect_same(expected);
    }
}

TYPED_TEST_P(ordered_map_test, TakesAndGivesKeysInAnyOrder) {
    constexpr std::uint64_t count = 2000;
    const auto ascending = [](std::uint64_t i) { return i; };
    const auto descending = [](std::uint64_t i) { return count - 1 - i; };
    const auto from_both_ends = [](std::uint64_t i) {
        return i % 2 == 0 ? i / 2 : count - 1 - i / 2;
    };
    const auto in_strides = [](std::uint64_t i) { return i * 37 % count; };
    using order = std::uint64_t (*)(std::uint64_t);
    this->open();
    for (const order coming :
         {order{ascending}, order{descending}, order{from_both_ends}, order{in_strides}})
        for (const order going : {order{ascending}, order{descending}, order{in_strides}}) {
            model expected;
            for (std::uint64_t i = 0; i < count; ++i) {
                this->insert_too(expected, coming(i), i);
                if (i % 3 == 0) this->insert_too(expected, coming(i), i + 1);
            }
            this->expect_same(expected);
            for (std::uint64_t i = 0; i < count; ++i) {
                ASSERT_TRUE(this->erase(going(i)));
                ASSERT_FALSE(this->erase(going(i)));
                expected.erase(going(i));
                if (i % 500 == 0) this->expect_same(expected);
            }
            this->expect_same({});
            if (this->HasFatalFailure()) return;
        }
}

TYPED_TEST_P(ordered_map_test, FindsRangesFromKeysThatAreThereOrNot) {
    this->open();
    model expected;
    std::mt19937_64 random(5);
    for (int i = 0; i < 3000; ++i) this->insert_too(expected, 10 + random() % 100000 * 2, i);
    for (int i = 0; i < 1000; ++i) {
        this->expect_range(expected, random() % 200100, 1 + random() % 100);
        if (this->HasFatalFailure()) return;
    }
    this->expect_range(expected, 0, expected.size() + 1);
    this->expect_range(expected, expected.rbegin()->first, 5);
    this->expect_range(expected, expected.rbegin()->first + 1, 5);
}

TYPED_TEST_P(ordered_map_test, IsThereAgainAfterReopening) {
    model expected;
    for (std::uint64_t round = 0; round < 4; ++round) {
        this->open();
        this->expect_same(expected);
        this->random_operations(expected, 100 + round, 4000, 3000, 3);
    }
}

TYPED_TEST_P(ordered_map_test, IsUnchangedByAnInsertionThatFindsThePoolFull) {
    this->open(2_MiB, 4_MiB);
    model expected;
    std::mt19937_64 random(9);
    unsigned failures = 0;
    for (int i = 0; i < 100000 && failures < 20; ++i) {
        const std::uint64_t number = random() % 1000000;
        const bool known = expected.contains(number);
        if (this->insert(number, number)) {
            expected[number] = number;
            continue;
        }
        ASSERT_FALSE(known) << "an assignment needs no room";
        if (++failures == 1) this->expect_same(expected);
    }
    ASSERT_EQ(failures, 20u) << "the pool never ran full";
    ASSERT_GT(expected.size(), 1000u);
    this->expect_same(expected);
    const std::uint64_t first = expected.begin()->first;
    this->insert_too(expected, first, 77);
    // Room again where keys were: half of the old ones go, new ones between them come.
    std::vector<std::uint64_t> gone;
    for (const auto& one : expected)
        if (gone.size() < expected.size() / 2) gone.push_back(one.first);
    for (const std::uint64_t number : gone) {
        ASSERT_TRUE(this->erase(number));
        expected.erase(number);
    }
    this->expect_same(expected);
    for (std::size_t i = 0; i < gone.size() / 4; ++i)
        this->insert_too(expected, gone[4 * i] + 1, i);
    this->expect_same(expected);
    this->open(2_MiB, 4_MiB);
    this->expect_same(expected);
}

TYPED_TEST_P(ordered_map_test, ReusesWhatErasuresFreed) {
    this->open(3_MiB, 3_MiB);
    for (std::uint64_t round = 0; round < 12; ++round) { // more in all than there is room for
        model expected;
        for (std::uint64_t i = 0; i < 2000; ++i)
            this->insert_too(expected, (i * 7919 + round * 31) % 5000, i);
        this->expect_same(expected);
        for (const auto& one : expected) ASSERT_TRUE(this->erase(one.first));
        this->expect_same({});
        if (this->HasFatalFailure()) return;
    }
}

TYPED_TEST_P(ordered_map_test, ServesSeveralThreads) {
    this->open();
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
                    EXPECT_EQ(this->erase(number), mine.erase(number) == 1);
                } else {
                    EXPECT_TRUE(this->insert(number, version));
                    mine[number] = version;
                }
                value found;
                const std::uint64_t other = random() % (keys_each * threads);
                const bool present = this->find(other, &found);
                if (other % threads == t) {
                    EXPECT_EQ(present, mine.contains(other));
                    if (present && mine.contains(other)) EXPECT_EQ(found, value_of(mine[other]));
                }
                if (i % 64 != 0) continue;
                std::uint64_t last = 0; // whatever others do meanwhile
                std::uint64_t seen = 0;
                this->root()->range(this->key_of(other), [&](const auto& k, const value&) {
                    EXPECT_GE(number_of(k), seen == 0 ? other : last + 1);
                    last = number_of(k);
                    return ++seen < 50;
                });
            }
        });
    for (std::thread& one : running) one.join();
    model all;
    for (const model& mine : expected) all.insert(mine.begin(), mine.end());
    this->expect_same(all);
    this->open();
    this->expect_same(all);
}

REGISTER_TYPED_TEST_SUITE_P(ordered_map_test, IsEmptyWhenItsPoolIsNew, AgreesWithAStandardMap,
                            TakesAndGivesKeysInAnyOrder, FindsRangesFromKeysThatAreThereOrNot,
                            IsThereAgainAfterReopening,
                            IsUnchangedByAnInsertionThatFindsThePoolFull, ReusesWhatErasuresFreed,
                            ServesSeveralThreads);

} // namespace hf::structures::test
