// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::ordered_map is std::map, whatever the types, the order and the mode, and keeps no node
// that nobody names. Method: random operations with fixed seeds beside std::map, batches and erased
// ranges between them, every few steps compared as a whole in both directions and at random bounds,
// the nodes counted by a walk of the kind; snapshots and versions; pools that run full; reopening;
// a trace after a crash; damaged nodes. Crash states are the business of the crash checker.
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/store.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/persist.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>
#include <mod/store_impl.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <unistd.h>
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
struct large { // three to an inner node, were there not four at least
    std::array<std::uint64_t, 30> words;
    auto operator<=>(const large&) const = default;
};
struct alignas(16) aligned {
    std::uint64_t low, high;
    auto operator<=>(const aligned&) const = default;
};
struct last_digit {
    std::uint64_t is;
};
struct by_last_digit { // not the library's
    using is_transparent = void;
    static constexpr std::uint16_t identity = 77;
    bool operator()(std::uint64_t a, std::uint64_t b) const {
        return std::pair(a % 10, a) < std::pair(b % 10, b);
    }
    bool operator()(std::uint64_t a, last_digit b) const { return a % 10 < b.is; }
    bool operator()(last_digit a, std::uint64_t b) const { return a.is < b % 10; }
};

using number_map = mod::ordered_map<std::uint64_t, value32>;
using text_map = mod::ordered_map<std::string, std::string>;

static_assert(std::bidirectional_iterator<number_map::iterator>);
static_assert(std::ranges::bidirectional_range<const number_map>);
static_assert(std::ranges::bidirectional_range<text_map::version>);
static_assert(std::ranges::bidirectional_range<const text_map::batch>);
static_assert(std::is_same_v<number_map::found_value, const value32*>);

// Things made of numbers.
template <class T> T made_of(std::uint64_t n) { return static_cast<T>(n); }
template <> empty made_of(std::uint64_t) { return {}; }
template <> value32 made_of(std::uint64_t n) { return {{n, n + 1, ~n, n * n}}; }
template <> aligned made_of(std::uint64_t n) { return {n % 10, n}; }
template <> std::string made_of(std::uint64_t n) { // of 1 to 300 bytes, zeros among them
    return std::to_string(n) + std::string(n % 13 == 0 ? 280 : n % 5, static_cast<char>(n % 3));
}
template <> large made_of(std::uint64_t n) {
    large made;
    made.words.fill(n);
    return made;
}

/// The same order for the model, whose keys are values.
template <class Map> struct model_order {
    bool operator()(const typename Map::key_type& a, const typename Map::key_type& b) const {
        return typename Map::key_compare{}(a, b);
    }
};
template <class Map>
using model_of = std::map<typename Map::key_type, typename Map::mapped_type, model_order<Map>>;

/// Counts what hangs on a word, as reclamation would.
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
    const mod::kind& kind = mod::detail::search_tree_kind;
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

class OrderedMap : public testing::TestWithParam<hf::mode> {
protected:
    void SetUp() override {
        char directory[] = "/dev/shm/mod_ordered_map_test.XXXXXX";
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
        options.layout = "mod_ordered_map_test/1";
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
    void crash_and_open() {
        hf::pool::impl::abandon(std::move(*pool_));
        open();
        ASSERT_TRUE(store().wait_for_trace().ok());
    }
    hf::pool& pool() { return *pool_; }
    mod::store& store() { return mod::store::of(*pool_); }
    template <class Map> Map map_of(std::string_view name = "map") {
        auto opened = Map::open(pool(), {name});
        if (!opened) ADD_FAILURE() << opened.error().what();
        return *opened;
    }
    /// No node is kept that the map's word does not name.
    template <class Map> void expect_no_leak(const Map& map) {
        const auto collected = store().collect();
        EXPECT_TRUE(collected.ok()) << collected.what();
        const auto sound = store().verify();
        EXPECT_TRUE(sound.ok()) << sound.what();
        EXPECT_EQ(store().account().nodes - store().account().retired, nodes_of(map));
    }

private:
    std::string directory_;
    std::string path_;
    std::unique_ptr<hf::pool> pool_;
};

/// An entry of the map is where the model's is.
template <class Reader, class Model>
void expect_at(const Reader& map, typename Reader::iterator found, const Model& model,
               typename Model::const_iterator wanted) {
    ASSERT_EQ(found == map.end(), wanted == model.end());
    if (wanted == model.end()) return;
    ASSERT_EQ(typename Model::key_type(found->first), wanted->first);
    ASSERT_EQ(typename Model::mapped_type(found->second), wanted->second);
}

template <class Reader, class Model> void expect_same(const Reader& map, const Model& model) {
    ASSERT_EQ(map.size(), model.size());
    ASSERT_EQ(map.empty(), model.empty());
    auto wanted = model.begin();
    auto found = map.begin();
    for (; found != map.end() && wanted != model.end(); ++found, ++wanted)
        ASSERT_NO_FATAL_FAILURE(expect_at(map, found, model, wanted));
    ASSERT_TRUE(found == map.end() && wanted == model.end());
    while (wanted != model.begin())
        ASSERT_NO_FATAL_FAILURE(expect_at(map, --found, model, --wanted));
    ASSERT_TRUE(found == map.begin());
    if (!model.empty()) {
        ASSERT_EQ(typename Model::key_type(map.first().first), model.begin()->first);
        ASSERT_EQ(typename Model::key_type(map.last().first), model.rbegin()->first);
    }
    for (const auto& [key, value] : model) {
        ASSERT_TRUE(map.contains(key));
        ASSERT_EQ(typename Model::mapped_type(*map.get(key)), value);
    }
}

/// Lookups of keys that are there and that are not.
template <class Reader, class Model>
void expect_bounds(const Reader& map, const Model& model, std::mt19937_64& random,
                   std::uint64_t keys) {
    for (int i = 0; i < 20; ++i) {
        const auto a = made_of<typename Model::key_type>(random() % (keys + 20));
        const auto b = made_of<typename Model::key_type>(random() % (keys + 20));
        ASSERT_NO_FATAL_FAILURE(expect_at(map, map.find(a), model, model.find(a)));
        ASSERT_NO_FATAL_FAILURE(expect_at(map, map.lower_bound(a), model, model.lower_bound(a)));
        ASSERT_NO_FATAL_FAILURE(expect_at(map, map.upper_bound(a), model, model.upper_bound(a)));
        const auto equal = map.equal_range(a);
        ASSERT_EQ(std::distance(equal.first, equal.second) == 1, model.contains(a));
        const auto& [from, upto] = std::minmax(a, b, model.key_comp());
        auto wanted = model.lower_bound(from);
        for (const auto& [key, value] : map.range(from, upto)) {
            ASSERT_EQ(typename Model::key_type(key), wanted->first);
            ++wanted;
        }
        ASSERT_TRUE(wanted == model.lower_bound(upto));
    }
}

/// One random step on anything that has insert, insert_or_assign and erase, and on the model.
template <class Map, class Target, class Result>
void step(std::mt19937_64& random, std::uint64_t keys, Target& target, model_of<Map>& model,
          Result result) {
    const auto key = made_of<typename Map::key_type>(random() % keys);
    const auto value = made_of<typename Map::mapped_type>(random() % 1000);
    switch (random() % 8) {
    case 0:
    case 1:
    case 2: ASSERT_EQ(result(target.insert(key, value)), model.emplace(key, value).second); break;
    case 3:
        ASSERT_EQ(result(target.insert_or_assign(key, value)),
                  model.insert_or_assign(key, value).second);
        break;
    case 4:
        if (random() % 32 == 0) {
            const auto other = made_of<typename Map::key_type>(random() % keys);
            const auto& [from, upto] = std::minmax(key, other, model.key_comp());
            const auto before = model.size();
            model.erase(model.lower_bound(from), model.lower_bound(upto));
            ASSERT_EQ(result(target.erase(from, upto)), before - model.size());
            break;
        }
        [[fallthrough]];
    default: ASSERT_EQ(result(target.erase(key)), model.erase(key) != 0);
    }
}
const auto told = [](const auto& outcome) {
    EXPECT_TRUE(outcome) << outcome.error().what();
    return *outcome;
};
const auto same = [](auto outcome) { return outcome; };

template <class Map>
void random_steps(Map map, std::uint64_t seed, std::uint64_t keys, int steps,
                  const std::function<void()>& check) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", keys " << keys);
    std::mt19937_64 random(seed);
    model_of<Map> model;
    for (std::uint64_t i = 0; i < keys; ++i) { // in order: ascending, or descending
        const auto n = seed % 2 == 0 ? i : keys - i;
        const auto key = made_of<typename Map::key_type>(n);
        const auto value = made_of<typename Map::mapped_type>(n);
        ASSERT_EQ(told(map.insert(key, value)), model.emplace(key, value).second);
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
    for (int i = 0; i < steps; ++i) {
        ASSERT_NO_FATAL_FAILURE(step<Map>(random, keys, map, model, told));
        if (i % (steps / 8) == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
            ASSERT_NO_FATAL_FAILURE(expect_bounds(map, model, random, keys));
            check();
        }
        if (random() % 16 != 0) continue;
        const auto committed = map.update([&](auto& batch) {
            for (int j = 0; j < 20; ++j)
                ASSERT_NO_FATAL_FAILURE(step<Map>(random, keys, batch, model, same));
            ASSERT_NO_FATAL_FAILURE(expect_bounds(batch, model, random, keys));
        });
        ASSERT_TRUE(committed.ok()) << committed.what();
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
    check();
    while (!model.empty()) {
        const auto n = random() % model.size();
        const auto key = std::next(model.begin(), static_cast<std::ptrdiff_t>(n))->first;
        ASSERT_TRUE(told(map.erase(key)));
        model.erase(key);
        if (model.size() % 64 == 0) {
            ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        }
    }
    EXPECT_EQ(map.word(), 0U);
    check();
}

#define HF_MAP_TEST(name, keys, steps, ...)                                                        \
    TEST_P(OrderedMap, name) {                                                                     \
        using map = __VA_ARGS__;                                                                   \
        for (std::uint64_t seed = 1; seed <= 3; ++seed)                                            \
            ASSERT_NO_FATAL_FAILURE(random_steps(map_of<map>(), seed, keys, steps,                 \
                                                 [&] { expect_no_leak(map_of<map>()); }));         \
    }
HF_MAP_TEST(numbers_to_bytes, 3000, 6000, number_map)
HF_MAP_TEST(a_small_map, 10, 3000, number_map)
HF_MAP_TEST(backwards, 500, 3000,
            mod::ordered_map<std::int32_t, std::uint8_t, mod::greater<std::int32_t>>)
HF_MAP_TEST(an_order_of_its_own, 500, 3000,
            mod::ordered_map<std::uint64_t, std::uint64_t, by_last_digit>)
HF_MAP_TEST(texts_to_texts, 500, 3000, text_map)
HF_MAP_TEST(texts_backwards, 500, 2000,
            mod::ordered_map<std::string, std::uint32_t, mod::greater<std::string>>)
HF_MAP_TEST(numbers_to_texts, 500, 3000, mod::ordered_map<std::uint32_t, std::string>)
HF_MAP_TEST(values_without_bytes, 3000, 3000, mod::ordered_map<std::uint8_t, empty>)
HF_MAP_TEST(aligned_keys_and_values, 500, 3000, mod::ordered_map<aligned, aligned>)
HF_MAP_TEST(large_keys, 200, 1500, mod::ordered_map<large, std::uint8_t>)
HF_MAP_TEST(large_values, 200, 1500, mod::ordered_map<std::uint64_t, large>)

TEST_P(OrderedMap, looks_up_what_is_like_a_key) {
    auto map = map_of<mod::ordered_map<std::uint64_t, int, by_last_digit>>();
    for (const std::uint64_t n : {5, 13, 23, 7}) ASSERT_TRUE(told(map.insert(n, int(n))));
    EXPECT_TRUE(map.contains(last_digit{3}) && !map.contains(last_digit{4}));
    EXPECT_EQ(map.find(last_digit{3})->first, 13U);
    EXPECT_EQ(*map.get(last_digit{5}), 5);
    EXPECT_EQ(std::distance(map.lower_bound(last_digit{3}), map.upper_bound(last_digit{3})), 2);
    auto texts = map_of<text_map>("texts");
    ASSERT_TRUE(told(texts.insert("one", "eins")));
    EXPECT_EQ(texts.get(std::string_view("one")), "eins");
    EXPECT_EQ(texts.get("two"), std::nullopt);
}

TEST_P(OrderedMap, serves_the_standard_algorithms) {
    auto map = map_of<mod::ordered_map<std::string, std::uint32_t>>();
    for (std::uint32_t i = 100; i < 200; ++i) ASSERT_TRUE(told(map.insert(std::to_string(i), i)));
    const std::map<std::string, std::uint32_t> copied(map.begin(), map.end());
    ASSERT_NO_FATAL_FAILURE(expect_same(map, copied));
    std::uint32_t wanted = 200;
    for (const auto& [key, value] : map | std::views::reverse) ASSERT_EQ(value, --wanted);
    EXPECT_EQ(wanted, 100U);
    EXPECT_EQ(map.rbegin()->second, 199U);
    auto values = map.range("150", "160") | std::views::transform([](auto e) { return e.second; });
    EXPECT_EQ(*std::ranges::max_element(values), 159U);
    auto it = map.begin();
    const auto before = it++;
    EXPECT_TRUE(before == map.begin() && it-- != before && it == before);
}

TEST_P(OrderedMap, a_snapshot_stays_whatever_comes) {
    auto map = map_of<text_map>();
    model_of<text_map> model;
    std::mt19937_64 random(11);
    std::vector<std::pair<text_map::version, model_of<text_map>>> kept;
    for (int round = 0; round < 12; ++round) {
        for (int i = 0; i < 200; ++i)
            ASSERT_NO_FATAL_FAILURE(step<text_map>(random, 300, map, model, told));
        kept.emplace_back(map.snapshot(), model);
        for (const auto& [version, then] : kept)
            ASSERT_NO_FATAL_FAILURE(expect_same(version, then));
    }
    ASSERT_TRUE(map.clear().ok());
    for (const auto& [version, then] : kept) ASSERT_NO_FATAL_FAILURE(expect_same(version, then));
    kept.clear();
    expect_no_leak(map);
    EXPECT_EQ(store().account().retired, 0U);
    EXPECT_EQ(store().account().nodes, 0U);
}

TEST_P(OrderedMap, versions_branch_and_one_of_them_is_committed) {
    auto map = map_of<text_map>();
    model_of<text_map> model;
    std::mt19937_64 random(13);
    for (int round = 0; round < 30; ++round) {
        const auto now = map.snapshot();
        auto left = now, right = now;
        auto left_model = model, right_model = model;
        const auto grow = [&](auto& version, auto& of, std::uint64_t n) {
            const auto key = made_of<std::string>(n % 100), value = made_of<std::string>(n % 999);
            if (n % 3 == 0) {
                version = version.erase(key);
                of.erase(key);
            } else {
                version = version.insert_or_assign(key, value);
                of.insert_or_assign(key, value);
            }
        };
        for (int i = 0; i < 10; ++i) grow(left, left_model, random());
        for (int i = 0; i < 10; ++i) grow(right, right_model, random());
        const auto batched = right.update([](auto& batch) { batch.erase("2", "7"); });
        ASSERT_NO_FATAL_FAILURE(expect_same(now, model));
        ASSERT_NO_FATAL_FAILURE(expect_same(left, left_model));
        ASSERT_NO_FATAL_FAILURE(expect_same(right, right_model));
        EXPECT_TRUE(batched.range("2", "7").empty());
        const auto first = map.commit(left);
        ASSERT_TRUE(first.ok()) << first.what();
        ASSERT_EQ(map.commit(right).code(), hf::errc::conflict);
        model = left_model;
        ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        ASSERT_NO_FATAL_FAILURE(expect_same(right, right_model));
    }
    expect_no_leak(map);
    const text_map::version none;
    EXPECT_TRUE(none.empty() && none.begin() == none.end() && !none.contains("2"));
    EXPECT_TRUE(none.lower_bound("2") == none.end());
}

TEST_P(OrderedMap, what_a_batch_reads_may_be_given_to_it) {
    auto map = map_of<text_map>();
    const auto committed = map.update([](auto& batch) {
        for (std::uint64_t i = 1000; i < 3000; ++i)
            batch.insert(std::to_string(i), std::to_string(i));
        batch.insert_or_assign("2999", *batch.get("1000"));
        EXPECT_EQ(batch.erase(batch.first().first, batch.last().first), 1999U);
    });
    ASSERT_TRUE(committed.ok()) << committed.what();
    ASSERT_NO_FATAL_FAILURE(expect_same(map, model_of<text_map>{{"2999", "1000"}}));
    expect_no_leak(map);

    auto numbers = map_of<number_map>("numbers");
    const auto erased = numbers.update([](auto& batch) {
        for (std::uint64_t i = 0; i < 100; ++i) batch.insert(i, {});
        EXPECT_EQ(batch.erase(18, 21), 3U); // a leaf is left as long as an inner node
        EXPECT_EQ(batch.erase(batch.find(22)->first, 90), 68U);
    });
    ASSERT_TRUE(erased.ok()) << erased.what();
    EXPECT_EQ(numbers.size(), 29U);
    EXPECT_TRUE(numbers.contains(21) && numbers.lower_bound(22)->first == 90);
}

TEST_P(OrderedMap, an_update_is_one_ordering_point) {
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
    EXPECT_EQ(points([&] { EXPECT_EQ(told(map.erase(100, 1100)), 1000U); }), 1U);
    EXPECT_EQ(points([&] { EXPECT_EQ(told(map.erase(100, 1100)), 0U); }), 0U);
    map.set_durability(mod::durability::on_return);
    EXPECT_EQ(points([&] { (void)told(map.insert(10'000, {})); }), 2U);
}

TEST_P(OrderedMap, a_full_pool_leaves_the_map_as_it_is) {
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
    expect_no_leak(map);
    ASSERT_TRUE(map.clear().ok());
    ASSERT_TRUE(store().collect().ok());
    ASSERT_TRUE(told(map.insert("again", "there is room")));
    expect_no_leak(map);
}

TEST_P(OrderedMap, closing_and_crashing_keep_it) {
    model_of<text_map> model;
    std::mt19937_64 random(19);
    for (int round = 0; round < 6; ++round) {
        auto map = map_of<text_map>();
        ASSERT_NO_FATAL_FAILURE(expect_same(map, model));
        expect_no_leak(map);
        for (int i = 0; i < 500; ++i)
            ASSERT_NO_FATAL_FAILURE(step<text_map>(random, 400, map, model, told));
        // The crash happens while a writer works: what it made is nobody's.
        auto* const unfinished = new mod::root::writing(map.of()->write());
        auto word = unfinished->word();
        using tree = mod::detail::search_tree<std::string, std::string, mod::less<std::string>>;
        tree::insert(unfinished->work(), word, "nobody's", "", tree::when_there::assign);
        if (round % 2 == 0) {
            crash_and_open();
        } else {
            delete unfinished;
            open();
        }
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(map_of<text_map>(), model));
}

TEST_P(OrderedMap, another_shape_is_another_layout) {
    const auto refused = [](const auto& opened) {
        return !opened && opened.error().code() == hf::errc::wrong_layout;
    };
    using std::uint32_t, std::uint64_t;
    (void)map_of<mod::ordered_map<uint64_t, uint64_t>>();
    EXPECT_TRUE(refused(mod::ordered_map<uint64_t, uint32_t>::open(pool(), {"map"})));
    EXPECT_TRUE(refused(mod::ordered_map<uint64_t, std::string>::open(pool(), {"map"})));
    EXPECT_TRUE(refused(
        mod::ordered_map<uint64_t, uint64_t, mod::greater<uint64_t>>::open(pool(), {"map"})));
    EXPECT_TRUE(
        refused(mod::ordered_map<uint64_t, uint64_t, by_last_digit>::open(pool(), {"map"})));
    EXPECT_TRUE(refused(mod::map<uint64_t, uint64_t>::open(pool(), {"map"})));
}

TEST_P(OrderedMap, verification_finds_counts_that_cannot_be) {
    auto map = map_of<text_map>();
    for (std::uint64_t i = 0; i < 500; ++i)
        ASSERT_TRUE(told(map.insert(made_of<std::string>(i), made_of<std::string>(i))));
    ASSERT_TRUE(store().collect().ok());
    mod::ref node = mod::detail::ordered::top_of(map.word());
    for (;;) { // at every level
        auto* const count =
            const_cast<std::uint32_t*>(mod::detail::node_at<std::uint32_t>(map.base(), node));
        const std::uint32_t right = *count;
        for (const std::uint32_t wrong : {0U, right + 20, ~0U}) {
            *count = wrong;
            EXPECT_EQ(store().verify().code(), hf::errc::corrupt) << wrong;
        }
        *count = right;
        EXPECT_TRUE(store().verify().ok());
        if ((node & mod::detail::ordered::leaf_bit) != 0) break;
        node = count[1 + right]; // keys are refs of blobs, then come the children
    }
}

TEST_P(OrderedMap, maps_of_both_kinds_change_together) {
    auto names = map_of<mod::map<std::uint64_t, std::string>>("names");
    auto ages = map_of<mod::ordered_map<std::uint32_t, std::uint64_t>>("ages");
    const auto names_next = names.snapshot().insert(1, "Ada");
    const auto ages_next = ages.snapshot().insert(36, 1);
    const auto done = store().commit({{names.of(), &names_next}, {ages.of(), &ages_next}});
    ASSERT_TRUE(done.ok()) << done.what();
    EXPECT_EQ(names.get(*ages.get(36)), "Ada");
    const auto renamed = mod::update(std::tie(names, ages), [](auto& names, auto& ages) {
        names.erase(1);
        return ages.insert_or_assign(37, 1);
    });
    ASSERT_TRUE(renamed.ok()) << renamed.what();
    EXPECT_TRUE(names.empty() && ages.contains(37));
}

TEST_P(OrderedMap, readers_beside_a_writer_see_whole_versions) {
    auto map = map_of<mod::ordered_map<std::uint64_t, std::uint64_t>>();
    constexpr std::uint64_t keys = 64;
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> torn{0}, seen{0};
    const auto write = [&](std::uint64_t round) {
        return map.update([&](auto& b) {
            b.clear();
            for (std::uint64_t i = 0; i < keys; ++i) b.insert(i * round, round);
        });
    };
    ASSERT_TRUE(write(1).ok());
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r)
        readers.emplace_back([&] {
            while (!stop) {
                const auto now = map.snapshot();
                const std::uint64_t first = now.first().second;
                torn += now.size() != keys;
                std::uint64_t i = 0;
                for (const auto& [key, value] : now) torn += value != first || key != first * i++;
                ++seen;
            }
        });
    for (std::uint64_t round = 2; round <= 300 || seen < 20; ++round)
        ASSERT_TRUE(write(round).ok());
    stop = true;
    for (auto& reader : readers) reader.join();
    EXPECT_EQ(torn, 0U);
    expect_no_leak(map);
}

INSTANTIATE_TEST_SUITE_P(modes, OrderedMap, testing::Values(hf::mode::process, hf::mode::pmem),
                         [](const auto& info) {
                             return info.param == hf::mode::process ? "process" : "pmem";
                         });

} // namespace
