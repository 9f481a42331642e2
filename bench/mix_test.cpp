// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what is measured is what YCSB's mixes say. The shares and the skew of plans are compared
// with the formulas, and every planned operation with the keys that exist then.
#include "mix.hpp"
#include "workload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace hf::bench {
namespace {

constexpr std::uint64_t records = 10000;
constexpr std::uint64_t ops = 40000;

plan_options planned(std::string_view name, distribution which = distribution::zipfian,
                     unsigned threads = 1) {
    return {ycsb_mix(name).value(), which, records, ops, threads};
}

std::map<operation_kind, double> shares(const std::vector<operation>& all) {
    std::map<operation_kind, double> of;
    for (const operation& one : all) of[one.kind] += 1.0 / static_cast<double>(all.size());
    return of;
}

TEST(Mixes, HaveTheSharesOfYcsb) {
    using kind = operation_kind;
    const std::map<std::string, std::map<kind, double>> wanted{
        {"ycsb-a", {{kind::read, .5}, {kind::update, .5}}},
        {"ycsb-b", {{kind::read, .95}, {kind::update, .05}}},
        {"ycsb-c", {{kind::read, 1}}},
        {"ycsb-d", {{kind::read, .95}, {kind::insert, .05}}},
        {"ycsb-e", {{kind::scan, .95}, {kind::insert, .05}}},
        {"ycsb-f", {{kind::read, .5}, {kind::read_modify_write, .5}}}};
    for (const auto& [name, each] : wanted) {
        const auto found = shares(plan(planned(name), 0));
        EXPECT_EQ(found.size(), each.size()) << name;
        for (const auto& [what, share] : each) EXPECT_NEAR(found.at(what), share, .01) << name;
    }
    EXPECT_FALSE(ycsb_mix("ycsb-g").has_value());
}

TEST(Mixes, TouchOnlyKeysThatExist) {
    for (const char* name : {"ycsb-a", "ycsb-d", "ycsb-e", "ycsb-f"})
        for (const distribution which : {distribution::zipfian, distribution::uniform}) {
            const plan_options options = planned(name, which, 3);
            std::set<std::uint64_t> loaded;
            for (unsigned w = 0; w < options.threads; ++w)
                for (const operation& one : plan_load(options, w)) loaded.insert(one.key);
            EXPECT_EQ(loaded.size(), records);
            for (unsigned w = 0; w < options.threads; ++w) {
                std::set<std::uint64_t> keys = loaded; // and what this thread inserts
                for (const operation& one : plan(options, w)) {
                    if (one.kind == operation_kind::insert)
                        ASSERT_TRUE(keys.insert(one.key).second) << name;
                    else ASSERT_TRUE(keys.contains(one.key)) << name;
                }
            }
        }
}

TEST(Mixes, FillAStructureWithEveryKeyOnce) {
    const plan_options options{{}, distribution::zipfian, 0, ops, 3};
    std::set<std::uint64_t> keys;
    for (unsigned w = 0; w < options.threads; ++w)
        for (const operation& one : plan(options, w)) {
            EXPECT_EQ(one.kind, operation_kind::insert);
            keys.insert(one.key);
        }
    EXPECT_EQ(keys.size(), ops);
}

// Probability of the most popular item among n: 1 / zeta(n, 0.99).
TEST(Zipfian, GivesTheFirstItemItsShare) {
    constexpr std::uint64_t items = 1000;
    double zeta = 0;
    for (std::uint64_t i = 1; i <= items; ++i) zeta += 1 / std::pow(static_cast<double>(i), .99);
    const zipfian next(items);
    generator random(1);
    std::map<std::uint64_t, double> seen;
    for (int i = 0; i < 200000; ++i) seen[next(random)] += 1 / 200000.0;
    EXPECT_NEAR(seen[0], 1 / zeta, .005);
    EXPECT_NEAR(seen[1], std::pow(.5, .99) / zeta, .005);
    EXPECT_LT(seen.rbegin()->first, items);
}

TEST(Zipfian, GrowsToWhatItWouldHaveBeen) {
    zipfian grown(10);
    grown.grow_to(500);
    const zipfian made(500);
    generator one(7);
    generator other(7);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(grown(one), made(other));
}

TEST(ScrambledZipfian, SpreadsThePopularItems) {
    const scrambled_zipfian next(records);
    generator random(1);
    std::map<std::uint64_t, int> seen;
    for (int i = 0; i < 100000; ++i) ++seen[next(random)];
    const auto most = std::ranges::max_element(seen, {}, [](const auto& e) { return e.second; });
    // 1 / 26.47 of 10^10 items; what else falls on the same one is a ten-thousandth.
    EXPECT_NEAR(most->second / 100000.0, 1 / 26.469, .004);
    EXPECT_GT(seen.size(), records / 4);
    EXPECT_LT(seen.rbegin()->first, records);
    EXPECT_GT(seen.rbegin()->first, records * 9 / 10);
}

TEST(SkewedLatest, PrefersTheNewest) {
    skewed_latest next(100);
    next.grow();
    generator random(1);
    std::map<std::uint64_t, int> seen;
    for (int i = 0; i < 20000; ++i) ++seen[next(random)];
    EXPECT_EQ(seen.rbegin()->first, 100U);
    EXPECT_GT(seen[100], seen[99]);
    EXPECT_GT(seen[99], seen[50]);
}

TEST(Keys, AsBytesAreOrderedLikeTheirNumbers) {
    generator random(3);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t a = random() >> random() % 64;
        const std::uint64_t b = random() >> random() % 64;
        EXPECT_EQ(a < b, key_bytes_of<32>(a) < key_bytes_of<32>(b));
        EXPECT_EQ(a < b, key_bytes_of<8>(a) < key_bytes_of<8>(b));
    }
}

} // namespace
} // namespace hf::bench
