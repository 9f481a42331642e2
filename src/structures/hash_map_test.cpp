// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the hash map is a map, whatever the engine and the mode, while nothing crashes.
// Method: one suite, built once per engine and run in every mode: random operations with fixed
// seeds beside std::unordered_map, reopening in between, several threads, pools that run full.
// Crashes are the business of the kill test.
#include <structures/hash_map.hpp>

#include <holdfast/author/blocks.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

using namespace hf::literals;

struct value {
    std::array<std::uint64_t, 32> words;
    bool operator==(const value&) const = default;
};
value value_of(std::uint64_t seed) {
    value made;
    for (std::uint64_t& word : made.words)
        word = seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return made;
}
struct long_key {
    char text[32];
};

using map = hf::structures::hash_map<std::uint64_t, value>;
using long_key_map = hf::structures::hash_map<long_key, std::uint64_t>;

class hash_map_test : public testing::TestWithParam<hf::mode> {
protected:
    void SetUp() override {
        char directory[] = "/dev/shm/hash_map_test.XXXXXX";
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
        options.layout = "hash_map_test/1";
        options.create_bytes = create_bytes;
        options.max_bytes = max_bytes;
        options.mode = GetParam();
        options.engines = hf::engines_of_build();
        auto opened = hf::pool::open(path_, options);
        ASSERT_TRUE(opened) << opened.error().what();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
    }
    hf::pool& pool() { return *pool_; }
    map* root() { return pool_->root<map>(); }

private:
    std::string directory_;
    std::string path_;
    std::unique_ptr<hf::pool> pool_;
};

using model = std::unordered_map<std::uint64_t, std::uint64_t>; // key -> seed of its value

void expect_same(const map& tested, const model& expected) {
    ASSERT_TRUE(tested.check());
    ASSERT_EQ(tested.size(), expected.size());
    std::uint64_t seen = 0;
    tested.for_each([&](std::uint64_t key, const value& found) {
        const auto place = expected.find(key);
        ASSERT_NE(place, expected.end());
        ASSERT_EQ(found, value_of(place->second));
        ++seen;
    });
    ASSERT_EQ(seen, expected.size());
}

void random_operations(map& tested, model& expected, std::uint64_t seed, int count,
                       std::uint64_t keys) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < count; ++i) {
        const std::uint64_t key = random() % keys;
        const std::uint64_t version = random();
        const auto known = expected.find(key);
        value found;
        switch (random() % 5) {
        case 0:
        case 1:
            ASSERT_TRUE(tested.insert(key, value_of(version)));
            expected[key] = version;
            break;
        case 2:
            ASSERT_EQ(tested.erase(key), known != expected.end());
            expected.erase(key);
            break;
        default:
            ASSERT_EQ(tested.find(key, &found), known != expected.end());
            if (known != expected.end()) ASSERT_EQ(found, value_of(known->second));
        }
    }
}

TEST_P(hash_map_test, IsEmptyWhenItsPoolIsNew) {
    open();
    expect_same(*root(), {});
    EXPECT_FALSE(root()->find(1, nullptr));
    EXPECT_FALSE(root()->erase(1));
}

TEST_P(hash_map_test, AgreesWithAnUnorderedMap) {
    for (const std::uint64_t keys : {40u, 3000u, 30000u}) {
        open();
        model expected;
        root()->for_each([&](std::uint64_t key, const value& found) {
            expected[key] = 0;
            (void)found;
        });
        for (const auto& left : expected) root()->erase(left.first);
        expected.clear();
        random_operations(*root(), expected, keys, 30000, keys);
        expect_same(*root(), expected);
    }
}

TEST_P(hash_map_test, IsThereAgainAfterReopening) {
    model expected;
    for (std::uint64_t round = 0; round < 4; ++round) {
        open();
        expect_same(*root(), expected);
        random_operations(*root(), expected, 100 + round, 8000, 6000);
    }
}

TEST_P(hash_map_test, ReservesWhetherEmptyOrNot) {
    open();
    model expected;
    ASSERT_TRUE(root()->reserve(20000));
    random_operations(*root(), expected, 7, 10000, 5000);
    ASSERT_TRUE(root()->reserve(400000));
    expect_same(*root(), expected);
    ASSERT_TRUE(root()->reserve(10));
    random_operations(*root(), expected, 8, 10000, 5000);
    expect_same(*root(), expected);
}

TEST_P(hash_map_test, KeepsKeysOfSeveralWords) {
    open();
    auto* tested = pool().root<long_key_map>();
    for (std::uint64_t i = 0; i < 5000; ++i) {
        long_key key{};
        std::snprintf(key.text, sizeof key.text, "a key of several words %llu",
                      static_cast<unsigned long long>(i));
        ASSERT_TRUE(tested->insert(key, i));
        std::uint64_t found = 0;
        ASSERT_TRUE(tested->find(key, &found));
        ASSERT_EQ(found, i);
    }
    ASSERT_TRUE(tested->check());
    ASSERT_EQ(tested->size(), 5000u);
}

TEST_P(hash_map_test, ServesSeveralThreads) {
    open();
    constexpr std::uint64_t threads = 4;
    constexpr std::uint64_t keys_each = 3000;
    std::array<model, threads> expected;
    std::vector<std::thread> running;
    for (std::uint64_t t = 0; t < threads; ++t)
        running.emplace_back([this, t, &mine = expected[t]] {
            std::mt19937_64 random(t);
            for (int i = 0; i < 12000; ++i) { // own keys, everybody's instances
                const std::uint64_t key = random() % keys_each * threads + t;
                const std::uint64_t version = random();
                if (version % 4 == 0) {
                    EXPECT_EQ(root()->erase(key), mine.erase(key) == 1);
                } else {
                    EXPECT_TRUE(root()->insert(key, value_of(version)));
                    mine[key] = version;
                }
                value found;
                const std::uint64_t other = random() % (keys_each * threads);
                const bool present = root()->find(other, &found);
                if (other % threads == t) EXPECT_EQ(present, mine.contains(other));
            }
        });
    for (std::thread& one : running) one.join();
    model all;
    for (const model& mine : expected) all.insert(mine.begin(), mine.end());
    expect_same(*root(), all);
    open();
    expect_same(*root(), all);
}

// The pool's extent in use: everything from the heap's start to the last block's end, so that gaps,
// bitmaps and bucket arrays count as well.
TEST_P(hash_map_test, TakesAtMostAQuarterMoreThanItsValues) {
    open(128_MiB, 128_MiB);
    constexpr std::uint64_t count = 200000;
    for (std::uint64_t key = 0; key < count; ++key) ASSERT_TRUE(root()->insert(key, value_of(key)));
    struct span {
        const std::byte* first = nullptr;
        const std::byte* end = nullptr;
    } used;
    hf::for_each_block(
        pool(),
        [](void* to, const void* block, std::size_t bytes) {
            auto& so_far = *static_cast<span*>(to);
            if (so_far.first == nullptr) so_far.first = static_cast<const std::byte*>(block);
            so_far.end = static_cast<const std::byte*>(block) + bytes;
        },
        &used);
    const auto in_use = static_cast<double>(used.end - used.first) +
                        static_cast<double>(hf::account(pool()).metadata_bytes);
    EXPECT_LE(in_use / static_cast<double>(count * sizeof(value)), 1.25);
    RecordProperty("bytes_per_value", std::to_string(in_use / static_cast<double>(count)));
    std::printf("%.1f bytes in the pool per %zu-byte value\n", in_use / count, sizeof(value));
}

TEST_P(hash_map_test, IsUnchangedByAnInsertionThatFindsThePoolFull) {
    open(2_MiB, 4_MiB);
    model expected;
    std::uint64_t key = 0;
    while (key < 100000 && root()->insert(key, value_of(key))) {
        expected[key] = key;
        ++key;
    }
    ASSERT_LT(key, 100000u) << "the pool never ran full";
    ASSERT_GT(key, 1000u);
    expect_same(*root(), expected);
    EXPECT_FALSE(root()->reserve(100000000));
    expect_same(*root(), expected);
    ASSERT_TRUE(root()->insert(0, value_of(77))); // needs no room
    expected[0] = 77;
    for (std::uint64_t gone = 1; gone < 200; ++gone) {
        ASSERT_TRUE(root()->erase(gone));
        expected.erase(gone);
    }
    for (std::uint64_t fresh = 1; fresh < 100; ++fresh) {
        ASSERT_TRUE(root()->insert(1000000 + fresh, value_of(fresh)));
        expected[1000000 + fresh] = fresh;
    }
    expect_same(*root(), expected);
    open(2_MiB, 4_MiB);
    expect_same(*root(), expected);
}

INSTANTIATE_TEST_SUITE_P(modes, hash_map_test, testing::Values(hf::mode::process, hf::mode::pmem),
                         [](const auto& given) {
                             return given.param == hf::mode::process ? "process" : "pmem";
                         });

} // namespace
