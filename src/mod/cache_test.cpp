// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a cache keeps within its bound, gives back what was put and nothing else, forgets what has
// expired or was not used, and says why it refuses. It is the same after a crash.
// Method: fixed and random calls beside a model, with a clock that the test sets; threads; pools
// that are full, left open or forged.
#include <mod/cache_entries.hpp>
#include <mod/test_support.hpp>

#include <holdfast/mod/cache.hpp>
#include <holdfast/mod/map.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using namespace hf;
using namespace hf::literals;
using namespace std::chrono_literals;
using mod::cache;
using mod::cache_options;
using u64 = std::uint64_t;

std::atomic<u64> test_time{1'000'000};
u64 test_clock() noexcept { return test_time; }

std::string value_of(u64 n, std::size_t bytes) {
    std::string made = std::to_string(n) + ":";
    made.resize(std::max(made.size(), bytes), static_cast<char>('a' + n % 26));
    return made;
}

class mod_cache : public testing::Test {
protected:
    mod_cache() { own_.open(); }
    cache_options bound(u64 max_bytes) const {
        return {.max_bytes = max_bytes, .clock_s = test_clock};
    }
    cache opened(const cache_options& how) {
        auto made = cache::open(own_.pool(), "pages", how);
        EXPECT_TRUE(made) << (made ? "" : made.error().what());
        return *made;
    }
    static void expect_error(const status& is, errc code, const std::string& part) {
        EXPECT_EQ(name(is.code()), name(code)) << is.what();
        EXPECT_NE(is.what().find(part), std::string::npos) << is.what();
    }
    static void ok(const status& is) { ASSERT_TRUE(is.ok()) << is.what(); }
    static bool yes(const result<bool>& is) {
        EXPECT_TRUE(is) << (is ? "" : is.error().what());
        return is && *is;
    }
    /// The sum of what entries count, from the pool.
    static u64 counted(const cache& of) {
        u64 sum = 0;
        of.for_each([&](std::string_view key, std::string_view value) {
            sum += of.bytes_of(key.size(), value.size());
            return true;
        });
        return sum;
    }
    mod::test::test_pool own_;
};

TEST_F(mod_cache, gives_what_was_put) {
    cache pages = opened(bound(100'000));
    EXPECT_FALSE(pages.get("a"));
    ok(pages.put("a", "1"));
    ok(pages.put("", std::string("\0x", 2)));
    EXPECT_EQ(pages.get("a"), "1");
    EXPECT_EQ(pages.get(""), std::string("\0x", 2));
    EXPECT_FALSE(yes(pages.add("a", "2")));
    EXPECT_TRUE(yes(pages.add("b", "2")));
    EXPECT_TRUE(yes(pages.replace("a", "3")));
    EXPECT_FALSE(yes(pages.replace("c", "3")));
    EXPECT_EQ(pages.get("a"), "3");
    EXPECT_EQ(*pages.view("b"), "2");
    EXPECT_TRUE(pages.contains("b") && !pages.contains("c"));
    EXPECT_EQ(pages.size(), 3U);
    EXPECT_EQ(pages.bytes(), counted(pages));
    EXPECT_TRUE(yes(pages.erase("b")));
    EXPECT_FALSE(yes(pages.erase("b")));
    EXPECT_FALSE(yes(pages.touch("b", 5s)));
    std::map<std::string, std::string> all;
    pages.for_each([&](auto key, auto value) { return all.emplace(key, value).second; });
    EXPECT_EQ(all, (std::map<std::string, std::string>{{"", {"\0x", 2}}, {"a", "3"}}));
    const auto counts = pages.statistics();
    EXPECT_EQ(counts.hits, 4U);
    EXPECT_EQ(counts.misses, 1U);
    ok(pages.clear());
    EXPECT_EQ(pages.size() + pages.bytes(), 0U);
}

TEST_F(mod_cache, a_view_outlives_its_entry) {
    cache pages = opened(bound(10'000));
    ok(pages.put("a", "first"));
    const auto kept = pages.view("a");
    ok(pages.put("a", "second"));
    for (u64 i = 0; i < 500; ++i) ok(pages.put(std::to_string(i), value_of(i, 100)));
    EXPECT_EQ(*kept, "first");
    EXPECT_EQ(kept->size(), 5U);
    EXPECT_FALSE(pages.view("none"));
    ok(pages.put("b", *pages.view("499"))); // of the cache's own memory
    EXPECT_EQ(pages.get("b"), value_of(499, 100));
}

TEST_F(mod_cache, keeps_within_its_bound_beside_a_model) {
    constexpr u64 seed = 36, max_bytes = 200'000;
    std::mt19937_64 random(seed);
    std::unordered_map<std::string, std::pair<std::string, std::optional<u64>>> model;
    std::optional<cache> pages = opened(bound(max_bytes));
    for (u64 step = 0; step < 20'000; ++step) {
        const std::string key = "key " + std::to_string(random() % 900);
        const std::string value = value_of(step, random() % (step % 50 == 0 ? 20'000 : 700));
        switch (random() % 8) {
        case 0:
        case 1:
        case 2: {
            const u64 ttl = random() % 4 == 0 ? 1 + random() % 50 : 0;
            ok(pages->put(key, value, ttl == 0 ? mod::forever : std::chrono::seconds(ttl)));
            model[key] = {value, ttl == 0 ? std::nullopt : std::optional(test_time + ttl)};
            break;
        }
        case 3:
            if (yes(pages->replace(key, value))) model[key] = {value, {}};
            break;
        case 4:
            if (yes(pages->erase(key))) model.erase(key);
            break;
        case 5: test_time += random() % 3; break;
        default:
            if (const auto found = pages->get(key)) { // evicted or right
                ASSERT_TRUE(model.contains(key)) << "seed " << seed << ", step " << step;
                const auto& [is, end] = model[key];
                ASSERT_TRUE(*found == is) << "seed " << seed << ", step " << step;
                ASSERT_TRUE(!end || *end > test_time) << "seed " << seed << ", step " << step;
            }
        }
        ASSERT_LE(pages->bytes(), max_bytes) << "seed " << seed << ", step " << step;
        if (step % 4000 == 3999) {
            ASSERT_TRUE(pages->expire());
            ASSERT_EQ(pages->bytes(), counted(*pages)) << "seed " << seed << ", step " << step;
            const u64 before = pages->bytes(), count = pages->size();
            pages.reset();
            if (step % 8000 == 7999) own_.crash_and_open();
            else own_.open();
            pages = opened(bound(max_bytes));
            ASSERT_EQ(pages->bytes(), before);
            ASSERT_EQ(pages->size(), count);
            ok(own_.store().verify());
        }
    }
    EXPECT_GT(pages->bytes(), max_bytes / 2);
}

TEST_F(mod_cache, bytes_are_those_of_its_nodes) {
    std::mt19937_64 random(1);
    for (const std::size_t value_bytes : {8U, 100U, 1000U, 5000U, 20'000U})
        for (const u64 entries : {200U, 3000U, 20'000U}) {
            if (value_bytes * entries > 64'000'000) continue;
            cache pages = opened(bound(u64{1} << 40));
            for (u64 i = 0; i < entries; ++i)
                ok(pages.put(std::to_string(random()), value_of(i, value_bytes)));
            ok(own_.store().collect());
            const double of_nodes = static_cast<double>(own_.store().account().node_bytes);
            const double said = static_cast<double>(pages.bytes());
            const double slack = 0.02 + 6.0 * static_cast<double>(entries) / said;
            EXPECT_LT(of_nodes, said * (1 + slack)) << value_bytes << " x " << entries;
            EXPECT_GT(of_nodes, said * (1 - slack)) << value_bytes << " x " << entries;
            ok(pages.clear());
            ok(own_.store().collect());
        }
}

/// A Zipf-like choice of keys, the same for each seed.
class requests {
public:
    explicit requests(u64 keys) : sums_(keys) {
        double sum = 0;
        for (u64 i = 0; i < keys; ++i)
            sums_[i] = sum += 1 / std::pow(static_cast<double>(i + 1), 0.9);
    }
    std::string next() {
        const double at = std::uniform_real_distribution<double>(0, sums_.back())(random_);
        const auto found = std::ranges::upper_bound(sums_, at) - sums_.begin();
        return std::to_string(10'000'000 + found);
    }

private:
    std::mt19937_64 random_{7};
    std::vector<double> sums_;
};

TEST_F(mod_cache, hits_about_as_often_as_an_exact_order_of_use) {
    constexpr u64 entries = 1000, keys = 10'000, count = 60'000;
    const u64 each = [&] { return opened(bound(1)).bytes_of(8, 40); }();
    cache pages = opened(bound(entries * each));
    std::list<std::string> order;
    std::unordered_map<std::string, std::list<std::string>::iterator> exact;
    u64 hits = 0, exact_hits = 0;
    requests all(keys);
    for (u64 i = 0; i < count; ++i) {
        const std::string key = all.next();
        if (const auto found = exact.find(key); found != exact.end()) {
            ++exact_hits;
            order.splice(order.end(), order, found->second);
        } else {
            if (exact.size() == entries) {
                exact.erase(order.front());
                order.pop_front();
            }
            exact[key] = order.insert(order.end(), key);
        }
        if (pages.get(key)) ++hits;
        else ok(pages.put(key, value_of(i, 40)));
    }
    EXPECT_EQ(pages.size(), entries);
    EXPECT_GT(static_cast<double>(hits), 0.95 * static_cast<double>(exact_hits));
    EXPECT_EQ(pages.statistics().hits, hits);
    EXPECT_EQ(pages.statistics().evictions, count - hits - entries);
}

TEST_F(mod_cache, evicts_what_was_not_used_for_longest) {
    const u64 each = [&] { return opened(bound(1)).bytes_of(1, 40); }();
    cache pages = opened(bound(8 * each));
    for (u64 i = 0; i < 8; ++i) ok(pages.put(std::to_string(i), value_of(i, 40)));
    for (u64 i = 0; i < 4; ++i) EXPECT_TRUE(pages.get(std::to_string(i)));
    for (u64 i = 8; i < 10; ++i) ok(pages.put(std::to_string(i), value_of(i, 40)));
    EXPECT_FALSE(pages.contains("4") || pages.contains("5"));
    for (const char* kept : {"0", "1", "2", "3", "6", "7", "8", "9"})
        EXPECT_TRUE(pages.contains(kept));
    ok(pages.put("L", value_of(0, 40 * 5))); // several go for one
    EXPECT_EQ(pages.get("L"), value_of(0, 200));
    EXPECT_LE(pages.bytes(), 8 * each);
}

TEST_F(mod_cache, recency_after_an_open_is_that_of_the_puts) {
    const u64 each = [&] { return opened(bound(1)).bytes_of(1, 40); }();
    {
        cache pages = opened(bound(8 * each));
        for (const char* key : {"3", "1", "2", "0"})
            ok(pages.put(key, value_of(0, 40))), ++test_time;
    }
    own_.crash_and_open();
    cache pages = opened(bound(2 * each)); // a smaller bound evicts at the open
    EXPECT_TRUE(pages.contains("2") && pages.contains("0"));
    EXPECT_EQ(pages.size(), 2U);
    EXPECT_EQ(pages.bytes(), 2 * each);
    EXPECT_EQ(pages.statistics().evictions, 2U);
}

TEST_F(mod_cache, entries_expire) {
    cache pages = opened({.max_bytes = 10'000, .ttl = 1min, .clock_s = test_clock});
    ok(pages.put("default", "1"));
    ok(pages.put("short", "2", 5s));
    ok(pages.put("always", "3", mod::forever));
    test_time += 4;
    EXPECT_EQ(pages.get("short"), "2");
    ++test_time;
    EXPECT_FALSE(pages.get("short"));
    EXPECT_FALSE(yes(pages.replace("short", "4")));
    EXPECT_FALSE(yes(pages.touch("short")));
    EXPECT_FALSE(yes(pages.erase("short")));
    EXPECT_EQ(pages.statistics().expirations, 1U);
    EXPECT_TRUE(yes(pages.touch("default", 2h)));
    ok(pages.put("short", "2", 5s));
    test_time += 3600;
    EXPECT_EQ(pages.get("default"), "1");
    EXPECT_TRUE(yes(pages.add("short", "5", 5s)));
    EXPECT_EQ(pages.statistics().expirations, 2U);
    test_time += 3601;
    EXPECT_EQ(pages.size(), 3U);
    const auto gone = pages.expire();
    ASSERT_TRUE(gone);
    EXPECT_EQ(*gone, 2U);
    EXPECT_EQ(pages.size(), 1U);
    EXPECT_EQ(pages.get("always"), "3");
    EXPECT_EQ(pages.bytes(), counted(pages));
}

TEST_F(mod_cache, what_has_expired_goes_before_what_is_old) {
    const u64 each = [&] { return opened(bound(1)).bytes_of(1, 40); }();
    cache pages = opened(bound(4 * each));
    ok(pages.put("0", value_of(0, 40)));
    for (const char* key : {"1", "2"}) ok(pages.put(key, value_of(0, 40), 5s));
    ok(pages.put("3", value_of(0, 40)));
    test_time += 5;
    ok(pages.put("4", value_of(0, 40)));
    EXPECT_TRUE(pages.contains("0") && pages.contains("3") && pages.contains("4"));
    EXPECT_EQ(pages.statistics().evictions, 0U);
    EXPECT_EQ(pages.statistics().expirations, 2U);
}

TEST_F(mod_cache, a_clock_that_is_set_back_revives_nothing_and_drops_nothing) {
    std::optional<cache> pages = opened(bound(10'000));
    ok(pages->put("short", "1", 10s));
    ok(pages->put("long", "2", 100s));
    test_time += 20;
    ok(pages->put("mark", "3"));
    EXPECT_FALSE(pages->contains("short"));
    pages.reset();
    test_time -= 10'000; // beside the process, as a start without a battery
    own_.open();
    pages = opened(bound(10'000));
    EXPECT_FALSE(pages->contains("short"));
    EXPECT_TRUE(pages->contains("long"));
    test_time += 79; // of the 100
    EXPECT_TRUE(pages->contains("long"));
    test_time += 1;
    EXPECT_FALSE(pages->contains("long"));
    ok(pages->put("new", "4", 10s));
    test_time -= 5000; // within a process: time stands still
    EXPECT_TRUE(pages->contains("new"));
    EXPECT_TRUE(pages->contains("mark"));
}

TEST_F(mod_cache, a_clock_beyond_2096_is_none) {
    test_time = 1'800'000'000;
    const auto run = [&](u64 start) {
        test_time = start;
        own_.open();
        cache pages = opened(bound(10'000));
        for (const char* key : {"a", "b"}) {
            ok(pages.put(key, "1", 600s));
            EXPECT_TRUE(pages.contains(key)) << start;
            test_time += 599;
            EXPECT_TRUE(pages.contains(key)) << start;
            ++test_time;
            EXPECT_FALSE(pages.contains(key)) << start;
        }
        ok(pages.put("last", "1", 6000s));
    };
    run(test_time);
    run(4'420'000'000); // 2110: goes on from the newest put
    run(u64{1} << 62);
    EXPECT_TRUE(opened(bound(10'000)).contains("last"));
    run(1'800'010'000);
    test_time = 1'800'100'000;
    EXPECT_FALSE(opened(bound(10'000)).contains("last"));
    run(test_time);
    test_time = 1'000'000;
}

TEST_F(mod_cache, refuses_misuse_with_expected_and_found) {
    const auto at = [&](const cache_options& how) {
        return cache::open(own_.pool(), "pages", how);
    };
    expect_error(at({}).error(), errc::bad_argument,
                 "max_bytes: expected a number of bytes above 0, found 0");
    expect_error(at({.max_bytes = 1, .ttl = 0s}).error(), errc::bad_argument,
                 "expected 1 to 4294967295 seconds, or forever, found 0");
    expect_error(cache::open(own_.pool(), "", bound(1)).error(), errc::bad_argument,
                 "expected 1 to 63 bytes");
    cache pages = opened(bound(1000));
    expect_error(at(bound(1000)).error(), errc::in_use, "expected one open handle");
    ok(pages.put("a", "1"));
    for (const auto ttl : {0s, -1s, std::chrono::seconds(u64{1} << 32)}) {
        const std::string found = "found " + std::to_string(ttl.count());
        expect_error(pages.put("a", "2", ttl), errc::bad_argument, found);
        expect_error(pages.add("b", "2", ttl).error(), errc::bad_argument, found);
        expect_error(pages.touch("a", ttl).error(), errc::bad_argument, found);
        expect_error(
            pages.get_or_compute("b", [] { return "2"; }, ttl).error(), errc::bad_argument, found);
    }
    expect_error(pages.put("a", value_of(0, 1000)), errc::bad_argument,
                 "an entry: expected at most 1000 bytes, found " +
                     std::to_string(pages.bytes_of(1, 1000)));
    EXPECT_EQ(pages.get("a"), "1");
    using map = mod::map<std::string, std::string>;
    expect_error(map::open(own_.pool(), {"pages"}).error(), errc::wrong_layout,
                 "expected map (key string, value string; shape 0x");
    ASSERT_TRUE(map::open(own_.pool(), {"map"}));
    expect_error(cache::open(own_.pool(), "map", bound(1)).error(), errc::wrong_layout,
                 "expected cache (key string, value string; shape 0x");
    using longs = mod::map<std::string, std::uint64_t>;
    ASSERT_TRUE(longs::open(own_.pool(), {"longs"}));
    using ints = mod::map<std::string, std::uint32_t>;
    expect_error(ints::open(own_.pool(), {"longs"}).error(), errc::wrong_layout,
                 "value 4 bytes aligned to 4; shape 0x");
    ASSERT_TRUE(map::open(own_.pool(), {"other"}));
    auto other = *map::open(own_.pool(), {"other"});
    ok(other.update([&](auto&) {
        expect_error(pages.put("b", "1"), errc::bad_argument, "");
        EXPECT_EQ(pages.get("a"), "1");
    }));
}

TEST_F(mod_cache, a_full_pool_evicts) {
    for (const hf::mode mode : {hf::mode::process, hf::mode::pmem}) {
        own_.make_new(mode, 4_MiB);
        std::optional<cache> pages = opened(bound(1_GiB)); // more than the pool can have
        constexpr u64 seed = 5;
        std::mt19937_64 random(seed);
        u64 refused = 0; // of 29
        for (u64 i = 0; i < 6000; ++i) {
            const std::size_t bytes = i < 3000 ? 1500 : random() % (i % 100 == 0 ? 100'000 : 3000);
            const std::string key = std::to_string(random() % 5000);
            const status kept = pages->put(key, value_of(i, bytes));
            if (kept.code() == errc::pool_full && bytes > 8000) { // needs whole chunks in a row
                ++refused;
                continue;
            }
            ok(kept);
            ASSERT_TRUE(pages->get(key) == value_of(i, bytes)) << "seed " << seed << ", step " << i;
        }
        EXPECT_LE(refused, 5U);
        EXPECT_GT(pages->bytes(), 2_MiB);
        EXPECT_EQ(pages->bytes(), counted(*pages));
        ok(own_.store().verify());
        pages.reset();
    }
}

TEST_F(mod_cache, a_full_pool_of_one_size_evicts) {
    struct {
        u64 value_bytes, pool_bytes;
    } const cases[] = {{100, 3_MiB}, {200, 4_MiB}}; // 19 000 and 15 000 have room
    for (const auto& [value_bytes, pool_bytes] : cases) {
        own_.make_new(hf::mode::process, pool_bytes);
        std::optional<cache> pages = opened(bound(64_MiB));
        const auto put = [&](u64 from, u64 to) {
            u64 refused = 0;
            for (u64 i = from; i < to; ++i)
                refused += !pages->put(std::to_string(i), value_of(i, value_bytes)).ok();
            return refused;
        };
        EXPECT_EQ(put(0, 22'000), 0U) << value_bytes;
        EXPECT_EQ(pages->get("21999"), value_of(21'999, value_bytes));
        for (u64 i = 0; i < 22'000; i += 50) {
            const std::string key = std::to_string(i);
            const bool there = pages->contains(key);
            EXPECT_EQ(yes(pages->erase(key)), there);
        }
        for (const u64 percent : {200U, 99U, 50U, 2U}) { // a smaller bound than what it has
            EXPECT_EQ(put(22'000, 23'000), 0U) << value_bytes << ", before " << percent;
            const u64 max_bytes = pages->bytes() * percent / 100;
            pages.reset();
            if (percent == 50) own_.crash_and_open();
            else own_.open();
            pages = opened(bound(max_bytes));
            EXPECT_LE(pages->bytes(), max_bytes);
            EXPECT_GT(pages->bytes(), std::min(max_bytes, pool_bytes / 2) * 9 / 10);
            EXPECT_EQ(pages->bytes(), counted(*pages));
        }
        ok(own_.store().verify());
        pages.reset();
    }
}

TEST_F(mod_cache, a_full_pool_that_a_view_holds_back_loses_nothing) {
    own_.make_new(hf::mode::process, 2_MiB);
    cache pages = opened(bound(64_MiB));
    for (u64 i = 0; i < 300; ++i) ok(pages.put(std::to_string(i), value_of(i, 20'000)));
    std::vector<std::string> keys;
    pages.for_each([&](auto key, auto) { return keys.emplace_back(key), true; });
    ASSERT_GT(keys.size(), 40U);
    {
        const auto held = pages.view(keys.front());
        std::size_t refused = 0;
        for (std::size_t i = 0; i < keys.size(); i += 4) {
            const std::string& key = keys[i];
            const auto before = pages.get(key);
            const status put = pages.put(key, value_of(7, 21'000));
            if (before && !put.ok()) {
                ++refused;
                EXPECT_TRUE(pages.get(key) == before);
                expect_error(put, errc::pool_full, "");
            }
            const bool there = pages.contains(key);
            (void)pages.touch(key, 1h);
            EXPECT_EQ(pages.contains(key), there);
        }
        EXPECT_GT(refused, 10U);
        EXPECT_GE(pages.size() + 4, keys.size());
        EXPECT_EQ(held->size(), 20'000U);
    }
    u64 stored = 0;
    for (const std::string& key : keys) stored += pages.put(key, value_of(8, 21'000)).ok();
    EXPECT_GT(stored, keys.size() * 9 / 10);
    EXPECT_EQ(pages.bytes(), counted(pages));
}

TEST_F(mod_cache, a_value_is_computed_once) {
    cache pages = opened(bound(100'000));
    std::atomic<unsigned> made{0}, right{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < 8; ++t)
        all.emplace_back([&] {
            for (u64 key = 0; key < 50; ++key) {
                const auto found = pages.get_or_compute(std::to_string(key), [&] {
                    ++made;
                    std::this_thread::yield();
                    return value_of(key, 50);
                });
                right += found && *found == value_of(key, 50);
            }
        });
    for (auto& each : all) each.join();
    EXPECT_EQ(made, 50U);
    EXPECT_EQ(right, 400U);
}

TEST_F(mod_cache, a_value_that_cannot_be_made_or_stored) {
    cache pages = opened(bound(1000));
    const auto failed =
        pages.get_or_compute("a", [] { return status{errc::io_error, "no answer"}; });
    expect_error(failed.error(), errc::io_error, "no answer");
    EXPECT_THROW((void)pages.get_or_compute("a", []() -> result<std::string> { throw 1; }), int);
    EXPECT_EQ(*pages.get_or_compute("a", [] { return "made"; }), "made");
    EXPECT_EQ(pages.get("a"), "made");
    const auto large = pages.get_or_compute("large", [] { return value_of(1, 2000); });
    EXPECT_EQ(*large, value_of(1, 2000));
    EXPECT_FALSE(pages.contains("large"));
    EXPECT_EQ(pages.statistics().not_stored, 1U);
    const auto circle =
        pages.get_or_compute("b", [&] { return pages.get_or_compute("b", [] { return ""; }); });
    expect_error(circle.error(), errc::bad_argument, "found one that asks for it");
    // When the maker fails, one of those that wait makes it anew.
    std::atomic<unsigned> tries{0}, got{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < 4; ++t)
        all.emplace_back([&] {
            const auto found = pages.get_or_compute("c", [&]() -> result<std::string> {
                std::this_thread::yield();
                if (tries++ == 0) return status{errc::io_error, "first"};
                return std::string("second");
            });
            got += found && *found == "second";
        });
    for (auto& each : all) each.join();
    EXPECT_EQ(got, 3U);
    EXPECT_EQ(tries, 2U);
}

TEST_F(mod_cache, values_that_wait_for_each_other) {
    cache pages = opened(bound(10'000));
    std::atomic<unsigned> begun{0}, refused{0}, got{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < 3; ++t)
        all.emplace_back([&, t] {
            const auto found = pages.get_or_compute(std::to_string(t), [&] {
                ++begun;
                while (begun < 3) std::this_thread::yield();
                return pages.get_or_compute(std::to_string((t + 1) % 3), [] { return "plain"; });
            });
            if (found) got += *found == "plain";
            else refused += found.error().code() == errc::bad_argument;
        });
    for (auto& each : all) each.join();
    EXPECT_EQ(refused, 1U); // the last that asked
    EXPECT_EQ(got, 2U);
}

TEST_F(mod_cache, threads_read_beside_writers) {
    constexpr u64 max_bytes = 50'000;
    cache pages = opened(bound(max_bytes));
    std::atomic<bool> stop{false};
    std::atomic<u64> wrong{0}, found{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < 2; ++t)
        all.emplace_back([&, t] {
            std::mt19937_64 random(t);
            for (u64 i = 0; i < 4000; ++i) {
                const u64 key = random() % 400;
                wrong += !pages.put(std::to_string(key), value_of(key, key % 300)).ok();
                if (i % 16 == 0) wrong += !pages.erase(std::to_string(random() % 400));
            }
            stop = true;
        });
    for (unsigned t = 0; t < 2; ++t)
        all.emplace_back([&, t] {
            std::mt19937_64 random(100 + t);
            while (!stop) {
                const u64 key = random() % 400;
                const auto is = pages.view(std::to_string(key));
                if (!is) continue;
                ++found;
                wrong += *is != value_of(key, key % 300);
                wrong += pages.bytes() > max_bytes;
            }
        });
    for (auto& each : all) each.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_GT(found, 0U);
    EXPECT_EQ(pages.bytes(), counted(pages));
}

TEST_F(mod_cache, is_read_in_a_pool_that_is_open_read_only) {
    { ok(opened(bound(10'000)).put("a", "1")); }
    own_.close();
    own_.how.read_only = true;
    own_.open();
    cache pages = opened(bound(1)); // evicts nothing here
    EXPECT_EQ(pages.get("a"), "1");
    EXPECT_EQ(pages.size(), 1U);
    expect_error(pages.erase("a").error(), errc::permission, "");
    EXPECT_EQ(pages.get("a"), "1");
}

/// Values that no cache has stored.
TEST_F(mod_cache, forged_values_are_misses_that_go_first) {
    auto forged = mod::detail::cache_entries::open(own_.pool(), {"pages"});
    ASSERT_TRUE(forged);
    const auto with_head = [](std::uint32_t stored_s, std::uint32_t ttl_s) {
        std::string made(8, '\0');
        std::memcpy(made.data(), &stored_s, 4), std::memcpy(made.data() + 4, &ttl_s, 4);
        return made + "value";
    };
    ASSERT_TRUE(forged->insert("empty", ""));
    ASSERT_TRUE(forged->insert("short", "1234567"));
    ASSERT_TRUE(forged->insert("future", with_head(UINT32_MAX, UINT32_MAX)));
    ASSERT_TRUE(forged->insert("immortal", with_head(UINT32_MAX, 0)));
    ASSERT_TRUE(forged->insert("mortal", with_head(5, 7)));
    ASSERT_TRUE(forged->insert("good", with_head(0, 0)));
    cache pages = opened(bound(1'000));
    EXPECT_FALSE(pages.get("empty") || pages.get("short") || pages.get("mortal"));
    EXPECT_EQ(pages.get("good"), "value");
    EXPECT_EQ(pages.get("immortal"), "value");
    EXPECT_FALSE(pages.get("future")); // no time goes on from that
    ok(pages.put("new", "1", 1h));
    EXPECT_TRUE(pages.contains("new"));
    test_time += 3600;
    EXPECT_FALSE(pages.contains("new"));
    ASSERT_TRUE(pages.expire());
    EXPECT_EQ(pages.size(), 2U);
    EXPECT_EQ(pages.bytes(), counted(pages));
}

} // namespace
