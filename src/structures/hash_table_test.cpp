// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: linear hashing keeps every node findable and its invariants intact, also when segments
// cannot be had. Method: the table alone over an allocator that fails on demand; no pool, no
// engine; random operations with fixed seeds, many colliding hashes, beside std::unordered_map.
#include <structures/hash_table.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

int failing = 0; // while set, two requests of three fail
int requests = 0;

} // namespace

extern "C" void* hf_alloc(std::size_t bytes) noexcept {
    if (failing != 0 && ++requests % 3 != 0) return nullptr;
    return std::malloc(bytes);
}
extern "C" void hf_free(void* block) noexcept { std::free(block); }

namespace {

using namespace hf::structures;

struct item : hash_node {
    std::uint64_t key;
    std::uint64_t value;
};

std::uint64_t mixed(std::uint64_t x) {
    for (int i = 0; i < 2; ++i) x = (x ^ x >> 32) * 0xd6e8feb86659fd93ULL;
    return x ^ x >> 32;
}

item* find(const hash_table& in, std::uint64_t key, std::uint64_t hash) {
    for (hash_node* each = chain(&in, hash); each != nullptr; each = each->next)
        if (each->hash == hash && static_cast<item*>(each)->key == key)
            return static_cast<item*>(each);
    return nullptr;
}

// Bucket by bucket, every node is met, once and in order.
void expect_walk(const hash_table& tested, std::uint64_t count) {
    std::unordered_set<const hash_node*> met;
    std::uint64_t from = 0, last = 0;
    do {
        from = for_each_in_bucket(&tested, from, [&](hash_node* each) {
            ASSERT_GE(detail::order(each->hash), last);
            last = detail::order(each->hash);
            ASSERT_TRUE(met.insert(each).second);
        });
        ASSERT_TRUE(from == 0 || from > last);
    } while (from != 0);
    ASSERT_EQ(met.size(), count);
}

struct shape {
    std::uint64_t seed;
    std::uint64_t keys;
    std::uint64_t keys_per_hash;
    int failing;
};

void agree(const shape& given) {
    hash_table tested{};
    std::unordered_map<std::uint64_t, std::uint64_t> expected;
    std::mt19937_64 random(given.seed);
    failing = given.failing;
    for (std::uint64_t i = 0; i < 40000; ++i) {
        const std::uint64_t key = random() % given.keys;
        const std::uint64_t hash = mixed(key / given.keys_per_hash);
        item* old = find(tested, key, hash);
        ASSERT_EQ(old != nullptr, expected.contains(key));
        if (old != nullptr) ASSERT_EQ(old->value, expected[key]);
        const auto operation = random() % 4;
        if (operation < 2) {
            auto* made = static_cast<item*>(std::malloc(sizeof(item)));
            *made = {{nullptr, hash}, key, i};
            if (old != nullptr) replace(&tested, old, made);
            else ASSERT_TRUE(link(&tested, made));
            std::free(old);
            expected[key] = i;
        } else if (operation == 2 && old != nullptr) {
            unlink(&tested, old);
            std::free(old);
            expected.erase(key);
        } else if (random() % 1000 == 0) {
            reserve(&tested, random() % (2 * given.keys));
        }
        ASSERT_EQ(size(&tested), expected.size());
        if (i % 997 == 0) ASSERT_TRUE(check(&tested));
    }
    ASSERT_TRUE(check(&tested));
    expect_walk(tested, expected.size());
    std::uint64_t seen = 0;
    for_each(&tested, [&](hash_node* each) {
        ASSERT_EQ(static_cast<item*>(each)->value, expected.at(static_cast<item*>(each)->key));
        ++seen;
        std::free(each);
    });
    ASSERT_EQ(seen, expected.size());
    for (hash_node** segment : tested.segments) std::free(segment);
}

TEST(hash_table_test, FindsWhatWasLinked) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) agree({seed, std::uint64_t{16} << seed, 1, 0});
}
TEST(hash_table_test, KeepsNodesOfEqualHashApart) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) agree({seed, std::uint64_t{16} << seed, 4, 0});
}
TEST(hash_table_test, OnlyDelaysSplitsWhenSegmentsCannotBeHad) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) agree({seed, std::uint64_t{16} << seed, 2, 1});
}

TEST(hash_table_test, WalksPastSplitsAndUnlinks) {
    hash_table tested{};
    std::vector<item> items(4000);
    for (std::uint64_t i = 0; i < items.size(); ++i) items[i] = {{nullptr, mixed(i)}, i, 0};
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(link(&tested, &items[i]));
    // Half of the first thousand stays; at every step others come and go.
    std::uint64_t from = 0, gone = 500, next = 1000;
    do {
        from = for_each_in_bucket(&tested, from,
                                  [&](hash_node* each) { ++static_cast<item*>(each)->value; });
        if (gone < 1000) unlink(&tested, &items[gone++]);
        for (int more = 0; more < 5 && next < items.size(); ++more)
            ASSERT_TRUE(link(&tested, &items[next++]));
    } while (from != 0);
    for (std::uint64_t i = 0; i < items.size(); ++i) {
        if (i < 500) ASSERT_EQ(items[i].value, 1U) << i;
        else ASSERT_LE(items[i].value, 1U) << i;
    }
    for (hash_node** segment : tested.segments) std::free(segment);
}

TEST(hash_table_test, SpreadsNodesOverAllBuckets) {
    hash_table tested{};
    std::vector<item> items(100000);
    for (std::uint64_t i = 0; i < items.size(); ++i) {
        items[i] = {
            {nullptr, mixed(i) | 0xff00000000000000ULL}, i, i}; // upper bits chose the table
        ASSERT_TRUE(link(&tested, &items[i]));
    }
    std::uint64_t used = 0;
    const std::uint64_t buckets = detail::bucket_count(tested.shape);
    for (std::uint64_t slot = 0; slot < buckets; ++slot)
        used += *detail::bucket_at(&tested, slot) != nullptr;
    EXPECT_GT(used * 2, buckets);
    for (hash_node** segment : tested.segments) std::free(segment);
}

} // namespace
