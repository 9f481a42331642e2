// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::map and mod::set are a map and a set, whatever the types, the hash and the mode, and
// keep no node that nobody names. Method: random operations with fixed seeds beside
// std::unordered_map, versions and batches between them, every few steps compared as a whole and
// the nodes counted by a walk of the hash trie's kind; pools that run full; reopening. Crashes are
// the business of the crash checker.
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/store.hpp>
#include <holdfast/persist.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using namespace hf::literals;
namespace mod = hf::mod;

struct value32 {
    std::array<std::uint64_t, 4> words;
    bool operator==(const value32&) const = default;
};
struct empty {
    bool operator==(const empty&) const = default;
};
struct point { // no comparison of its own
    std::uint32_t x, y, z;
};
struct alignas(16) aligned_value {
    std::uint64_t low, high;
    bool operator==(const aligned_value&) const = default;
};
struct large_value {
    std::array<std::uint64_t, 100> words;
    bool operator==(const large_value&) const = default;
};

// Bad hashes, given to the trie as they are.
struct constant_hash {
    using is_avalanching = void;
    std::uint64_t operator()(std::uint64_t) const { return 0x1234'5678'9abc'def0; }
};
struct few_hashes { // three values, which differ in the last digit only
    using is_avalanching = void;
    std::uint64_t operator()(std::uint64_t key) const { return key % 3 << 60; }
};
struct long_common_way { // the first twelve digits are the same
    using is_avalanching = void;
    std::uint64_t operator()(std::uint64_t key) const { return key << 48 | 0x7777'7777'7777; }
};
struct number_of_text { // not the library's
    using is_transparent = void;
    static constexpr std::uint16_t identity = 77;
    std::uint64_t operator()(std::string_view text) const {
        return std::hash<std::string_view>{}(text);
    }
    std::uint64_t operator()(std::uint64_t number) const { return (*this)(std::to_string(number)); }
};
struct same_text_or_number {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a == b; }
    bool operator()(std::string_view a, std::uint64_t b) const { return a == std::to_string(b); }
};

using number_map = mod::map<std::uint64_t, value32>;
using text_map = mod::map<std::string, std::string>;

static_assert(std::ranges::forward_range<const number_map>);
static_assert(std::ranges::forward_range<number_map::version>);
static_assert(std::ranges::forward_range<const text_map::batch>);
static_assert(std::ranges::forward_range<const mod::set<std::string>>);
static_assert(std::forward_iterator<mod::set<std::uint32_t>::iterator>);
static_assert(std::is_same_v<number_map::found_value, const value32*>);
static_assert(std::is_same_v<text_map::key_view, std::string_view>);
static_assert(std::is_copy_constructible_v<number_map> &&
              !std::is_default_constructible_v<number_map>);

// Things made of numbers.
template <class T> T made_of(std::uint64_t n);
template <> std::uint64_t made_of(std::uint64_t n) { return n; }
template <> std::uint32_t made_of(std::uint64_t n) { return static_cast<std::uint32_t>(n); }
template <> empty made_of(std::uint64_t) { return {}; }
template <> value32 made_of(std::uint64_t n) { return {{n, n + 1, ~n, n * n}}; }
template <> aligned_value made_of(std::uint64_t n) { return {n, ~n}; }
template <> std::string made_of(std::uint64_t n) { // of 0 to 299 bytes, zeros among them
    return std::to_string(n) + std::string(n % 13 == 0 ? 280 : n % 5, static_cast<char>(n % 3));
}
template <> large_value made_of(std::uint64_t n) {
    large_value made;
    made.words.fill(n);
    return made;
}

/// Counts what hangs on a word, as reclamation would, and that it is where it may be.
struct counting final : mod::visitor {
    struct found {
        mod::ref at;
        std::uint32_t context;
    };
    std::vector<found> left;
    std::uint64_t nodes = 0;
    void node(mod::ref at, std::size_t, std::uint32_t context) override {
        left.push_back({at, context});
        ++nodes;
    }
};
template <class Map> std::uint64_t nodes_of(const Map& map) {
    const mod::kind& kind = mod::detail::hash_trie_kind;
    const std::uint64_t shape = map.of()->shape();
    counting to;
    kind.top(to, map.base(), map.word(), shape);
    while (!to.left.empty()) {
        const auto next = to.left.back();
        to.left.pop_back();
        kind.children(to, mod::detail::node_at<std::byte>(map.base(), next.at), mod::node_bytes_max,
                      next.context, shape);
    }
    return to.nodes;
}

class Pool : public testing::TestWithParam<hf::mode> {
protected:
    void SetUp() override {
        char directory[] = "/dev/shm/mod_map_test.XXXXXX";
        ASSERT_NE(mkdtemp(directory), nullptr);
        directory_ = directory;
        path_ = directory_ + "/map.hf";
        open();
    }
    void TearDown() override {
        pool_.reset();
        std::remove(path_.c_str());
        rmdir(directory_.c_str());
    }
    void open(std::uint64_t create_bytes = 16_MiB, std::uint64_t max_bytes = 1_GiB) {
        pool_.reset();
        hf::open_options options;
        options.layout = "mod_map_test/1";
        options.create_bytes = create_bytes;
        options.max_bytes = max_bytes;
        options.mode = GetParam();
        options.engines = {mod::engine()};
        auto opened = hf::pool::open(path_, options);
        ASSERT_TRUE(opened) << opened.error().what();
        pool_ = std::make_unique<hf::pool>(std::move(*opened));
    }
    void start_over(std::uint64_t create_bytes, std::uint64_t max_bytes) {
        pool_.reset();
        std::remove(path_.c_str());
        open(create_bytes, max_bytes);
    }
    hf::pool& pool() { return *pool_; }
    mod::store& store() { return mod::store::of(*pool_); }
    template <class Map> Map map_of(std::string_view name = "map") {
        auto opened = Map::open(pool(), {name});
        if (!opened) ADD_FAILURE() << opened.error().what();
        return *opened;
    }
    /// No node is kept that the roots' words do not name.
    void expect_nodes(std::uint64_t nodes) {
        const auto collected = store().collect();
        EXPECT_TRUE(collected.ok()) << collected.what();
        const auto sound = store().verify();
        EXPECT_TRUE(sound.ok()) << sound.what();
        EXPECT_EQ(store().account().nodes - store().account().retired, nodes);
    }
    template <class Map> void expect_no_leak(const Map& map) { expect_nodes(nodes_of(map)); }

private:
    std::string directory_;
    std::string path_;
    std::unique_ptr<hf::pool> pool_;
};

template <class Map>
using model_of = std::unordered_map<typename Map::key_type, typename Map::mapped_type>;

template <class Reader, class Model> void expect_same(const Reader& map, const Model& model) {
    ASSERT_EQ(map.size(), model.size());
    ASSERT_EQ(map.empty(), model.empty());
    std::size_t seen = 0;
    for (const auto& [key, value] : map) {
        const auto found = model.find(typename Model::key_type(key));
        ASSERT_NE(found, model.end());
        ASSERT_EQ(found->second, typename Model::mapped_type(value));
        ++seen;
    }
    ASSERT_EQ(seen, model.size()); // no key twice, as each was found once: sizes agree
    for (const auto& [key, value] : model) {
        const auto found = map.find(key);
        ASSERT_TRUE(found != map.end());
        ASSERT_EQ(typename Model::key_type(found->first), key);
        ASSERT_TRUE(map.contains(key));
        ASSERT_EQ(typename Model::mapped_type(*map.get(key)), value);
    }
}

/// One random step on anything that has insert, insert_or_assign and erase, and on the model.
template <class Map, class Target, class Result>
void step(std::mt19937_64& random, std::uint64_t keys, Target& target, model_of<Map>& model,
          Result result) {
    using key_type = typename Map::key_type;
    using mapped_type = typename Map::mapped_type;
    const auto key = made_of<key_type>(random() % keys);
    const auto value = made_of<mapped_type>(random());
    switch (random() % 8) {
    case 0:
    case 1:
    case 2: ASSERT_EQ(result(target.insert(key, value)), model.emplace(key, value).second); break;
    case 3:
    case 4:
        ASSERT_EQ(result(target.insert_or_assign(key, value)),
                  model.insert_or_assign(key, value).second);
        break;
    default: ASSERT_EQ(result(target.erase(key)), model.erase(key) != 0);
    }
}
bool told(const hf::result<bool>& outcome) {
    EXPECT_TRUE(outcome) << outcome.error().what();
    return outcome && *outcome;
}

template <class Map>
void random_steps(Map map, std::uint64_t seed, std::uint64_t keys, int steps,
                  const std::function<void()>& check) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", keys " << keys);
    std::mt19937_64 random(seed);
    model_of<Map> model;
    for (const auto& entry : map)
        model.emplace(std::pair<typename Map::key_type, typename Map::mapped_type>(entry));
    for (int i = 0; i < steps; ++i) {
        ASSERT_NO_FATAL_FAILURE(step<Map>(random, keys, map, model, told));
        if (i % (steps / 4) == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        }
        if (random() % 16 != 0) continue;
        const auto committed = map.update([&](auto& batch) {
            for (int j = 0; j < 20; ++j)
                ASSERT_NO_FATAL_FAILURE(
                    step<Map>(random, keys, batch, model, [](bool done) { return done; }));
        });
        ASSERT_TRUE(committed.ok()) << committed.what();
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
    check();
    while (!model.empty()) {
        ASSERT_TRUE(told(map.erase(model.begin()->first)));
        model.erase(model.begin());
        if (model.size() % 64 == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        }
    }
    EXPECT_EQ(map.word(), 0U);
    check();
}

#define HF_MAP_KIND_TEST(name, keys, steps, ...)                                                   \
    TEST_P(Pool, name) {                                                                           \
        using map = __VA_ARGS__;                                                                   \
        for (std::uint64_t seed = 1; seed <= 3; ++seed)                                            \
            ASSERT_NO_FATAL_FAILURE(random_steps(map_of<map>(), seed, keys, steps,                 \
                                                 [&] { expect_no_leak(map_of<map>()); }));         \
    }
HF_MAP_KIND_TEST(numbers_to_bytes, 5000, 12000, number_map)
HF_MAP_KIND_TEST(a_small_map, 10, 3000, number_map)
HF_MAP_KIND_TEST(texts_to_texts, 1000, 4000, text_map)
HF_MAP_KIND_TEST(texts_to_numbers, 1000, 4000, mod::map<std::string, std::uint32_t>)
HF_MAP_KIND_TEST(numbers_to_texts, 1000, 4000, mod::map<std::uint32_t, std::string>)
HF_MAP_KIND_TEST(values_without_bytes, 1000, 4000, mod::map<std::uint32_t, empty>)
HF_MAP_KIND_TEST(aligned_values, 1000, 4000, mod::map<std::uint32_t, aligned_value>)
HF_MAP_KIND_TEST(large_values, 200, 2000, mod::map<std::uint64_t, large_value>)
HF_MAP_KIND_TEST(one_hash_for_all, 100, 1500, mod::map<std::uint64_t, std::uint64_t, constant_hash>)
HF_MAP_KIND_TEST(one_hash_for_all_large_values, 20, 600,
                 mod::map<std::uint64_t, large_value, constant_hash>)
HF_MAP_KIND_TEST(few_hashes_that_part_late, 100, 1500,
                 mod::map<std::uint64_t, std::string, few_hashes>)
HF_MAP_KIND_TEST(hashes_that_part_late, 500, 2500,
                 mod::map<std::uint64_t, value32, long_common_way>)

TEST_P(Pool, sets) {
    auto numbers = map_of<mod::set<std::uint32_t>>("numbers");
    auto texts = map_of<mod::set<std::string>>("texts");
    std::unordered_set<std::uint32_t> model;
    std::mt19937_64 random(7);
    for (int i = 0; i < 6000; ++i) {
        const auto key = static_cast<std::uint32_t>(random() % 2000);
        const auto text = made_of<std::string>(key);
        if (random() % 5 < 3) {
            ASSERT_EQ(told(numbers.insert(key)), model.insert(key).second);
            (void)told(texts.insert(text));
        } else {
            ASSERT_EQ(told(numbers.erase(key)), model.erase(key) != 0);
            (void)told(texts.erase(text));
        }
    }
    ASSERT_EQ(numbers.size(), model.size());
    ASSERT_EQ(texts.size(), model.size());
    EXPECT_TRUE(
        std::ranges::all_of(numbers, [&](std::uint32_t key) { return model.contains(key); }));
    for (const std::string_view text : texts)
        ASSERT_TRUE(model.contains(static_cast<std::uint32_t>(std::stoul(std::string(text)))));
    for (const auto key : model) {
        ASSERT_EQ(*numbers.find(key), key);
        ASSERT_TRUE(texts.contains(made_of<std::string>(key)));
    }
    expect_nodes(nodes_of(numbers) + nodes_of(texts));
    EXPECT_EQ(std::ranges::distance(numbers), static_cast<std::ptrdiff_t>(model.size()));
    const auto before = numbers.snapshot();
    ASSERT_TRUE(numbers.clear().ok());
    EXPECT_TRUE(numbers.empty() && numbers.begin() == numbers.end());
    EXPECT_EQ(before.size(), model.size());
    EXPECT_EQ(before.insert(1'000'000).size(), model.size() + 1);
}

TEST_P(Pool, looks_up_what_is_like_a_key) {
    auto texts = map_of<text_map>("texts");
    ASSERT_TRUE(told(texts.insert("one", "eins")));
    EXPECT_EQ(texts.get(std::string("one")), "eins");
    EXPECT_EQ(texts.get(std::string_view("one")), "eins");
    EXPECT_EQ(texts.count("two"), 0U);
    EXPECT_EQ(texts.get("two"), std::nullopt);

    auto mixed = map_of<mod::map<std::string, int, number_of_text, same_text_or_number>>("mixed");
    ASSERT_TRUE(told(mixed.insert("12", 5)));
    EXPECT_TRUE(mixed.contains(std::uint64_t{12}));
    EXPECT_EQ(mixed.find(std::uint64_t{12})->second, 5);
    EXPECT_EQ(mixed.count(std::uint64_t{13}), 0U);
    EXPECT_TRUE(told(mixed.erase(std::uint64_t{12})));
    EXPECT_TRUE(mixed.empty());

    auto points = map_of<mod::set<point>>("points");
    EXPECT_TRUE(told(points.insert({1, 2, 3})));
    EXPECT_FALSE(told(points.insert({1, 2, 3})));
    EXPECT_TRUE(points.contains({1, 2, 3}) && !points.contains({1, 2, 4}));
}

TEST_P(Pool, entries_serve_the_standard_algorithms) {
    auto map = map_of<mod::map<std::string, std::uint32_t>>();
    for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(told(map.insert(std::to_string(i), i)));
    const std::vector<std::pair<std::string, std::uint32_t>> copied(map.begin(), map.end());
    EXPECT_EQ(copied.size(), 100U);
    EXPECT_TRUE(std::ranges::equal(map, copied, [](const auto& a, const auto& b) {
        return a.first == b.first && a.second == b.second;
    }));
    auto large = map | std::views::filter([](const auto& e) { return e.second >= 90; }) |
                 std::views::transform([](const auto& e) { return e.second; });
    EXPECT_EQ(std::ranges::distance(large), 10);
    auto it = map.begin();
    auto before = it++;
    EXPECT_TRUE(before == map.begin() && before != it);
}

TEST_P(Pool, a_snapshot_stays_whatever_comes) {
    auto map = map_of<number_map>();
    model_of<number_map> model;
    std::mt19937_64 random(11);
    std::vector<std::pair<number_map::version, model_of<number_map>>> kept;
    for (int round = 0; round < 20; ++round) {
        for (int i = 0; i < 200; ++i)
            ASSERT_NO_FATAL_FAILURE(step<number_map>(random, 300, map, model, told));
        kept.emplace_back(map.snapshot(), model);
        for (const auto& [version, then] : kept)
            ASSERT_NO_FATAL_FAILURE(expect_same(version, then));
    }
    ASSERT_TRUE(map.clear().ok());
    for (const auto& [version, then] : kept) ASSERT_NO_FATAL_FAILURE(expect_same(version, then));
    kept.clear();
    expect_no_leak(map);
    EXPECT_EQ(store().account().retired, 0U);
}

TEST_P(Pool, versions_branch_and_one_of_them_is_committed) {
    auto map = map_of<text_map>();
    model_of<text_map> model;
    std::mt19937_64 random(13);
    for (int round = 0; round < 30; ++round) {
        const auto now = map.snapshot();
        auto left = now, right = now;
        auto left_model = model, right_model = model;
        for (int i = 0; i < 10; ++i) {
            const auto grow = [&](auto& version, auto& of, std::uint64_t n) {
                const auto key = made_of<std::string>(n % 100), value = made_of<std::string>(n);
                if (n % 3 == 0) {
                    version = version.erase(key);
                    of.erase(key);
                } else {
                    version = version.insert_or_assign(key, value);
                    of.insert_or_assign(key, value);
                }
            };
            grow(left, left_model, random());
            grow(right, right_model, random());
        }
        ASSERT_NO_FATAL_FAILURE(expect_same(now, model));
        ASSERT_NO_FATAL_FAILURE(expect_same(left, left_model));
        ASSERT_NO_FATAL_FAILURE(expect_same(right, right_model));
        const auto first = map.commit(left);
        ASSERT_TRUE(first.ok()) << first.what();
        ASSERT_EQ(map.commit(right).code(), hf::errc::conflict);
        model = left_model;
        ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        ASSERT_NO_FATAL_FAILURE(expect_same(right, right_model));
    }
    expect_no_leak(map);
}

TEST_P(Pool, a_version_takes_a_batch) {
    auto map = map_of<number_map>();
    const auto tried = map.snapshot().update([](auto& batch) {
        for (std::uint64_t i = 0; i < 1000; ++i) batch.insert(i, made_of<value32>(i));
        for (std::uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(batch.erase(i));
        EXPECT_FALSE(batch.contains(499) || !batch.contains(500));
    });
    EXPECT_TRUE(map.empty());
    EXPECT_EQ(tried.size(), 500U);
    EXPECT_EQ(tried[700], made_of<value32>(700));
    EXPECT_EQ(tried[3], value32{});
    ASSERT_TRUE(map.commit(tried).ok());
    EXPECT_EQ(map.size(), 500U);
    expect_no_leak(map);
}

TEST_P(Pool, a_batch_may_be_given_up) {
    auto map = map_of<text_map>();
    ASSERT_TRUE(told(map.insert("key", "value")));
    const auto try_it = [&](bool wanted) {
        return map.update([&](auto& batch) {
            batch.insert("other", "value");
            batch.erase("key");
            return wanted;
        });
    };
    ASSERT_TRUE(try_it(false).ok());
    EXPECT_TRUE(map.size() == 1 && map.contains("key"));
    expect_no_leak(map);
    ASSERT_TRUE(try_it(true).ok());
    EXPECT_TRUE(map.size() == 1 && map.contains("other"));
}

TEST_P(Pool, an_update_is_one_ordering_point) {
    auto map = map_of<number_map>();
    const auto points = [](auto&& work) {
        const auto before = hf::persist::thread_counters().ordering_points;
        work();
        return hf::persist::thread_counters().ordering_points - before;
    };
    for (std::uint64_t i = 0; i < 2000; ++i) (void)told(map.insert(i, {}));
    EXPECT_EQ(points([&] { (void)told(map.insert(10'000, {})); }), 1U);
    EXPECT_EQ(points([&] { (void)told(map.insert(10'000, {})); }), 0U);
    EXPECT_EQ(points([&] { (void)told(map.insert_or_assign(10'000, {{1}})); }), 1U);
    EXPECT_EQ(points([&] { (void)told(map.erase(10'000)); }), 1U);
    EXPECT_EQ(points([&] { (void)told(map.erase(10'000)); }), 0U);
    EXPECT_EQ(points([&] {
                  (void)map.update([](auto& batch) {
                      for (std::uint64_t i = 0; i < 50; ++i) batch.erase(i);
                  });
              }),
              1U);
    const auto tried = map.snapshot().insert(1, {}).insert(2, {});
    EXPECT_EQ(points([&] { ASSERT_TRUE(map.commit(tried).ok()); }), 1U);
    map.set_durability(mod::durability::on_return);
    EXPECT_EQ(points([&] { (void)told(map.insert(10'000, {})); }), 2U);
}

TEST_P(Pool, a_full_pool_leaves_the_map_as_it_is) {
    start_over(1_MiB, 1_MiB);
    auto map = map_of<text_map>();
    model_of<text_map> model;
    std::mt19937_64 random(17);
    int refused = 0;
    while (refused < 50) {
        const auto n = random() % 100'000;
        const auto key = made_of<std::string>(n), value = made_of<std::string>(n + 1);
        const auto word = map.word();
        if (const auto inserted = map.insert_or_assign(key, value)) {
            model.insert_or_assign(key, value);
            continue;
        } else {
            ASSERT_EQ(inserted.error().code(), hf::errc::pool_full);
        }
        ++refused;
        ASSERT_EQ(map.word(), word);
        const auto tried = map.snapshot().update([&](auto& batch) {
            for (std::uint64_t i = 0; i < 200; ++i)
                batch.insert_or_assign(made_of<std::string>(i * 13), value);
            EXPECT_TRUE(batch.failed());
            for (const auto& [k, v] : batch) ASSERT_TRUE(batch.get(k) == v);
        });
        ASSERT_EQ(map.commit(tried).code(), hf::errc::pool_full);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
    ASSERT_TRUE(map.clear().ok());
    ASSERT_TRUE(store().collect().ok());
    ASSERT_TRUE(told(map.insert("again", "there is room")));
    expect_no_leak(map);
}

TEST_P(Pool, too_long_a_string_is_refused) {
    auto map = map_of<text_map>();
    const std::string huge(mod::node_bytes_max, 'x');
    EXPECT_EQ(map.insert("key", huge).error().code(), hf::errc::pool_full);
    EXPECT_EQ(map.insert(huge, "value").error().code(), hf::errc::pool_full);
    EXPECT_TRUE(map.empty());
    EXPECT_TRUE(told(map.insert("key", std::string(3_MiB, 'y'))));
    EXPECT_EQ(map.get("key")->size(), 3_MiB);
    expect_no_leak(map);
}

TEST_P(Pool, reopening_finds_the_map) {
    model_of<text_map> model;
    std::mt19937_64 random(19);
    for (int round = 0; round < 4; ++round) {
        auto map = map_of<text_map>();
        ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        for (int i = 0; i < 500; ++i)
            ASSERT_NO_FATAL_FAILURE(step<text_map>(random, 400, map, model, told));
        expect_no_leak(map);
        open();
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(map_of<text_map>(), model));
}

TEST_P(Pool, another_shape_is_another_layout) {
    const auto refused = [](const auto& opened) {
        return !opened && opened.error().code() == hf::errc::wrong_layout;
    };
    (void)map_of<mod::map<std::uint64_t, std::uint64_t>>();
    EXPECT_TRUE(refused(mod::map<std::uint64_t, std::uint32_t>::open(pool(), {"map"})));
    EXPECT_TRUE(refused(mod::map<std::uint32_t, std::uint64_t>::open(pool(), {"map"})));
    EXPECT_TRUE(refused(mod::map<std::uint64_t, std::string>::open(pool(), {"map"})));
    EXPECT_TRUE(refused(mod::set<std::uint64_t>::open(pool(), {"map"})));
    EXPECT_TRUE(
        refused(mod::map<std::uint64_t, std::uint64_t, constant_hash>::open(pool(), {"map"})));
    (void)map_of<text_map>("texts");
    EXPECT_TRUE(refused(mod::set<std::string>::open(pool(), {"texts"})));
    EXPECT_TRUE(
        refused(mod::map<std::string, std::string, number_of_text>::open(pool(), {"texts"})));
    (void)map_of<mod::map<std::uint32_t, empty>>("no bytes");
    EXPECT_TRUE(refused(mod::set<std::uint32_t>::open(pool(), {"no bytes"})));
    (void)map_of<text_map>("texts");
}

TEST_P(Pool, erasing_gives_the_inner_nodes_back) {
    auto map = map_of<number_map>();
    std::mt19937_64 random(23);
    std::vector<std::uint64_t> keys(20'000);
    for (auto& key : keys) ASSERT_TRUE(told(map.insert(key = random(), {})));
    while (keys.size() > 100) {
        ASSERT_TRUE(told(map.erase(keys.back())));
        keys.pop_back();
    }
    EXPECT_LT(nodes_of(map), 100U); // 4369 inner nodes were there
    for (const auto key : keys) EXPECT_TRUE(map.contains(key));
    expect_no_leak(map);
}

TEST_P(Pool, several_maps_change_together) {
    const auto move_one = [&](const mod::place& from_place, const mod::place& to_place) {
        auto from = *number_map::open(pool(), from_place);
        auto to = *number_map::open(pool(), to_place);
        ASSERT_TRUE(told(from.insert(1, {{5}})));
        const auto from_next = from.snapshot().erase(1);
        const auto to_next = to.snapshot().insert(1, {{5}});
        const auto done = store().commit({{from.of(), &from_next}, {to.of(), &to_next}});
        ASSERT_TRUE(done.ok()) << done.what();
        EXPECT_TRUE(from.empty());
        ASSERT_NE(to.get(1), nullptr);
        EXPECT_EQ(*to.get(1), value32{{5}});
    };
    ASSERT_NO_FATAL_FAILURE(move_one({"from"}, {"to"}));
    ASSERT_NO_FATAL_FAILURE(
        move_one({"from", "family", {"from", "to"}}, {"to", "family", {"from", "to"}}));
}

TEST_P(Pool, readers_beside_a_writer_see_whole_versions) {
    auto map = map_of<mod::map<std::uint64_t, std::uint64_t>>();
    constexpr std::uint64_t keys = 64;
    ASSERT_TRUE(map.update([](auto& b) {
                       for (std::uint64_t i = 0; i < keys; ++i) b.insert(i, 0);
                   })
                    .ok());
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> torn{0}, seen{0};
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            while (!stop) {
                const auto now = map.snapshot();
                const std::uint64_t first = now[0];
                torn += now.size() != keys;
                for (const auto& [key, value] : now) torn += value != first;
                ++seen;
            }
        });
    for (std::uint64_t round = 1; round <= 300 || seen < 20; ++round)
        ASSERT_TRUE(map.update([&](auto& b) {
                           for (std::uint64_t i = 0; i < keys; ++i) b.insert_or_assign(i, round);
                       })
                        .ok());
    stop = true;
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(torn, 0U);
    expect_no_leak(map);
}

/// What the kind says of one node that lies alone.
struct told_of final : mod::visitor {
    bool corrupt = false;
    int nodes = 0;
    void node(mod::ref at, std::size_t bytes, std::uint32_t) override {
        ++nodes;
        corrupt |= at == mod::ref_max && bytes == mod::node_bytes_max;
    }
};
template <class Trie>
told_of children_of(const void* node, std::size_t bytes, std::uint32_t context) {
    told_of to;
    mod::detail::hash_trie_kind.children(to, static_cast<const std::byte*>(node), bytes, context,
                                         Trie::shape());
    return to;
}

TEST(Version, of_no_map_is_empty) {
    const number_map::version none;
    EXPECT_TRUE(none.empty() && none.begin() == none.end() && none.find(1) == none.end());
    EXPECT_TRUE(!none.contains(1) && none.get(1) == nullptr && none[1] == value32{});
}

TEST(Kind, damaged_nodes_are_told_from_sound_ones) {
    using namespace mod::detail;
    using trie_of =
        trie<std::string, std::uint64_t, mod::hash<std::string>, mod::equal_to<std::string>>;
    std::array<std::uint64_t, 64> bytes{};
    const std::uint32_t leaf = leaf_context | 3, last = leaf_context | trie_levels;
    const auto check = [&](std::uint64_t head, std::size_t of, std::uint32_t context) {
        bytes[0] = head;
        return children_of<trie_of>(bytes.data(), of, context);
    };
    EXPECT_EQ(check(2, 32, leaf).nodes, 2); // 8 + 2 refs + 2 numbers
    EXPECT_FALSE(check(2, 32, leaf).corrupt);
    EXPECT_TRUE(check(2, 16, leaf).corrupt);
    EXPECT_TRUE(check(0, 512, leaf).corrupt);
    EXPECT_TRUE(check(8, 512, leaf).corrupt);
    const auto wide = leaf_head::wide(9).bits;
    EXPECT_EQ(check(wide, 512, last).nodes, 9);
    EXPECT_FALSE(check(wide, 512, last).corrupt);
    EXPECT_TRUE(check(wide, 512, leaf).corrupt); // the hash is not used up
    EXPECT_TRUE(check(wide, 96, last).corrupt);
    EXPECT_TRUE(check(leaf_head::wide(7).bits, 512, last).corrupt);

    const blob text = {5, 6};
    EXPECT_FALSE(children_of<trie_of>(&text, 32, blob_context).corrupt);
    EXPECT_TRUE(children_of<trie_of>(&text, 16, blob_context).corrupt);
    const blob huge = {0xffff'fff0, 0x20};
    EXPECT_TRUE(children_of<trie_of>(&huge, 48, blob_context).corrupt);

    inner node{};
    node.child[3] = 100;
    node.child[9] = 200 | leaf_bit;
    EXPECT_EQ(children_of<trie_of>(&node, 64, 14).nodes, 2);
    EXPECT_FALSE(children_of<trie_of>(&node, 64, 14).corrupt);
    EXPECT_TRUE(children_of<trie_of>(&node, 64, 15).corrupt); // an inner node behind the hash

    const auto top = [](std::uint64_t word) {
        told_of to;
        hash_trie_kind.top(to, nullptr, word, trie_of::shape());
        return to;
    };
    EXPECT_EQ(top(0).nodes, 0);
    EXPECT_FALSE(top(word_of(5, 9)).corrupt);
    EXPECT_TRUE(top(word_of(0, 9)).corrupt);
    EXPECT_TRUE(top(word_of(5, 0)).corrupt);
}

INSTANTIATE_TEST_SUITE_P(modes, Pool, testing::Values(hf::mode::process, hf::mode::pmem),
                         [](const auto& info) {
                             return info.param == hf::mode::process ? "process" : "pmem";
                         });

} // namespace
