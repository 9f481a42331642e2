// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::map and mod::set are a map and a set, whatever the types, the hash and the mode.
// Method: the generic suite, and what only they promise: lookups by what is like a key, hashes,
// shapes, nodes that are damaged.
#include <mod/keyed_suite.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/set.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <random>
#include <ranges>
#include <string>
#include <vector>

namespace hf::mod::test {
namespace {

using value = words<4>;
struct point { // no comparison of its own
    std::uint32_t x, y, z;
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

using number_map = mod::map<std::uint64_t, value>;
using text_map = mod::map<std::string, std::string>;
using plain_map = mod::map<std::uint64_t, std::uint64_t>;

static_assert(std::ranges::forward_range<const number_map>);
static_assert(std::ranges::forward_range<number_map::version>);
static_assert(std::ranges::forward_range<const text_map::batch>);
static_assert(std::ranges::forward_range<const mod::set<std::string>>);
static_assert(std::forward_iterator<mod::set<std::uint32_t>::iterator>);
static_assert(std::is_same_v<number_map::found_value, const value*>);
static_assert(std::is_same_v<text_map::key_view, std::string_view>);
static_assert(std::is_copy_constructible_v<number_map> &&
              !std::is_default_constructible_v<number_map>);

using each_form = testing::Types<
    keyed<number_map, 5000, 4000>, keyed<number_map, 10, 1000>, keyed<text_map, 1000, 2000>,
    keyed<mod::map<std::string, std::uint32_t>, 1000, 2000>,
    keyed<mod::map<std::uint32_t, std::string>, 1000, 2000>,
    keyed<mod::map<std::uint32_t, empty>, 1000, 2000>,
    keyed<mod::map<std::uint32_t, words<2, 16>>, 1000, 2000>,
    keyed<mod::map<std::uint64_t, words<100>>, 200, 1000>,
    keyed<mod::map<std::uint64_t, std::uint64_t, constant_hash>, 100, 1000>,
    keyed<mod::map<std::uint64_t, words<100>, constant_hash>, 20, 400>,
    keyed<mod::map<std::uint64_t, std::string, few_hashes>, 100, 1000>,
    keyed<mod::map<std::uint64_t, value, long_common_way>, 500, 1500>,
    keyed<mod::set<std::uint32_t>, 2000, 2000>, keyed<mod::set<std::string>, 2000, 2000>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Maps, ElementTest, each_form);
using main_forms = testing::Types<keyed<number_map, 300, 0>, keyed<text_map, 300, 0>,
                                  keyed<mod::set<std::string>, 300, 0>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Maps, ContainerTest, main_forms);
using of_numbers = testing::Types<keyed<plain_map, 1, 0>, keyed<mod::set<std::uint64_t>, 1, 0>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Maps, NumbersTest, of_numbers);

class MapTest : public PoolTest {
protected:
    void SetUp() override { in.make_new(GetParam()); }
    void expect_nodes(std::initializer_list<const mod::root*> roots) {
        EXPECT_EQ(in.nodes_in_use(), nodes_of(mod::detail::hash_trie_kind, roots));
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, MapTest, testing::ValuesIn(both_modes), mode_name);

TEST_P(MapTest, what_changes_nothing_has_no_ordering_point) {
    expect_points_of_changes(in.get<number_map>());
}

TEST_P(MapTest, looks_up_what_is_like_a_key) {
    auto texts = in.get<text_map>({"texts"});
    ASSERT_TRUE(told(texts.insert("one", "eins")));
    EXPECT_EQ(texts.get(std::string("one")), "eins");
    EXPECT_EQ(texts.get(std::string_view("one")), "eins");
    EXPECT_EQ(texts.count("two"), 0U);
    EXPECT_EQ(texts.get("two"), std::nullopt);

    auto mixed = in.get<mod::map<std::string, int, number_of_text, same_text_or_number>>({"mixed"});
    ASSERT_TRUE(told(mixed.insert("12", 5)));
    EXPECT_TRUE(mixed.contains(std::uint64_t{12}));
    EXPECT_EQ(mixed.find(std::uint64_t{12})->second, 5);
    EXPECT_EQ(mixed.count(std::uint64_t{13}), 0U);
    EXPECT_TRUE(told(mixed.erase(std::uint64_t{12})));
    EXPECT_TRUE(mixed.empty());

    auto points = in.get<mod::set<point>>({"points"});
    EXPECT_TRUE(told(points.insert({1, 2, 3})));
    EXPECT_FALSE(told(points.insert({1, 2, 3})));
    EXPECT_TRUE(points.contains({1, 2, 3}) && !points.contains({1, 2, 4}));
}

TEST_P(MapTest, entries_serve_the_standard_algorithms) {
    auto map = in.get<mod::map<std::string, std::uint32_t>>();
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

TEST_P(MapTest, a_version_takes_a_batch) {
    auto map = in.get<number_map>();
    const auto tried = map.snapshot().update([](auto& batch) {
        for (std::uint64_t i = 0; i < 1000; ++i) batch.insert(i, made_of<value>(i));
        for (std::uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(batch.erase(i));
        EXPECT_FALSE(batch.contains(499) || !batch.contains(500));
    });
    EXPECT_TRUE(map.empty());
    EXPECT_EQ(tried.size(), 500U);
    EXPECT_EQ(tried[700], made_of<value>(700));
    EXPECT_EQ(tried[3], value{});
    ASSERT_TRUE(map.commit(tried).ok());
    EXPECT_EQ(map.size(), 500U);
    expect_nodes({map.its_root()});
}

TEST_P(MapTest, a_batch_may_be_given_up) {
    auto map = in.get<text_map>();
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
    expect_nodes({map.its_root()});
    ASSERT_TRUE(try_it(true).ok());
    EXPECT_TRUE(map.size() == 1 && map.contains("other"));
}

TEST_P(MapTest, too_long_a_string_is_refused) {
    auto map = in.get<text_map>();
    const std::string huge(mod::node_bytes_max, 'x');
    EXPECT_EQ(map.insert("key", huge).error().code(), hf::errc::pool_full);
    EXPECT_EQ(map.insert(huge, "value").error().code(), hf::errc::pool_full);
    EXPECT_TRUE(map.empty());
    EXPECT_TRUE(told(map.insert("key", std::string(3_MiB, 'y'))));
    EXPECT_EQ(map.get("key")->size(), 3_MiB);
    expect_nodes({map.its_root()});
}

TEST_P(MapTest, another_shape_is_another_layout) {
    (void)in.get<mod::map<std::uint64_t, std::uint64_t>>({"map"});
    EXPECT_TRUE(is_wrong_layout(mod::map<std::uint64_t, std::uint32_t>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(mod::map<std::uint32_t, std::uint64_t>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(mod::map<std::uint64_t, std::string>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(mod::set<std::uint64_t>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(
        mod::map<std::uint64_t, std::uint64_t, constant_hash>::open(in.pool(), {"map"})));
    (void)in.get<text_map>({"texts"});
    EXPECT_TRUE(is_wrong_layout(mod::set<std::string>::open(in.pool(), {"texts"})));
    EXPECT_TRUE(is_wrong_layout(
        mod::map<std::string, std::string, number_of_text>::open(in.pool(), {"texts"})));
    (void)in.get<mod::map<std::uint32_t, empty>>({"no bytes"});
    EXPECT_TRUE(is_wrong_layout(mod::set<std::uint32_t>::open(in.pool(), {"no bytes"})));
    (void)in.get<text_map>({"texts"});
}

TEST_P(MapTest, erasing_gives_the_inner_nodes_back) {
    auto map = in.get<number_map>();
    std::mt19937_64 random(23);
    std::vector<std::uint64_t> keys(20'000);
    for (auto& key : keys) ASSERT_TRUE(told(map.insert(key = random(), {})));
    while (keys.size() > 100) {
        ASSERT_TRUE(told(map.erase(keys.back())));
        keys.pop_back();
    }
    EXPECT_LT(nodes_of(mod::detail::hash_trie_kind, {map.its_root()}),
              100U); // 4369 inner nodes were there
    for (const auto key : keys) EXPECT_TRUE(map.contains(key));
    expect_nodes({map.its_root()});
}

TEST_P(MapTest, several_maps_change_together) {
    const auto move_one = [&](const mod::place& from_place, const mod::place& to_place) {
        auto from = *number_map::open(in.pool(), from_place);
        auto to = *number_map::open(in.pool(), to_place);
        ASSERT_TRUE(told(from.insert(1, {{5}})));
        const auto from_next = from.snapshot().erase(1);
        const auto to_next = to.snapshot().insert(1, {{5}});
        const auto done =
            in.store().commit({{from.its_root(), &from_next}, {to.its_root(), &to_next}});
        ASSERT_TRUE(done.ok()) << done.what();
        EXPECT_TRUE(from.empty());
        ASSERT_NE(to.get(1), nullptr);
        EXPECT_EQ(*to.get(1), value{{5}});
    };
    ASSERT_NO_FATAL_FAILURE(move_one({"from"}, {"to"}));
    ASSERT_NO_FATAL_FAILURE(
        move_one({"from", "family", {"from", "to"}}, {"to", "family", {"from", "to"}}));
}

/// The nodes and elements that the kind reports for one node that lies alone.
template <class Trie>
reached_nodes children_of(const void* node, std::size_t bytes, std::uint32_t context) {
    reached_nodes to;
    mod::detail::hash_trie_kind.children(to, static_cast<const std::byte*>(node), bytes, context,
                                         Trie::shape());
    return to;
}

TEST(Version, of_no_map_is_empty) {
    const number_map::version none;
    EXPECT_TRUE(none.empty() && none.begin() == none.end() && none.find(1) == none.end());
    EXPECT_TRUE(!none.contains(1) && none.get(1) == nullptr && none[1] == value{});
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
    EXPECT_EQ(check(2, 32, leaf).visits, 2U); // 8 + 2 refs + 2 numbers
    EXPECT_FALSE(check(2, 32, leaf).corrupt());
    EXPECT_TRUE(check(2, 16, leaf).corrupt());
    EXPECT_TRUE(check(0, 512, leaf).corrupt());
    EXPECT_TRUE(check(8, 512, leaf).corrupt());
    const auto wide = leaf_head::wide(9).bits;
    EXPECT_EQ(check(wide, 512, last).visits, 9U);
    EXPECT_FALSE(check(wide, 512, last).corrupt());
    EXPECT_TRUE(check(wide, 512, leaf).corrupt()); // the hash is not used up
    EXPECT_TRUE(check(wide, 96, last).corrupt());
    EXPECT_TRUE(check(leaf_head::wide(7).bits, 512, last).corrupt());

    const blob text = {5, 6};
    EXPECT_FALSE(children_of<trie_of>(&text, 32, blob_context).corrupt());
    EXPECT_TRUE(children_of<trie_of>(&text, 16, blob_context).corrupt());
    const blob huge = {0xffff'fff0, 0x20};
    EXPECT_TRUE(children_of<trie_of>(&huge, 48, blob_context).corrupt());

    inner node{};
    node.child[3] = 100;
    node.child[9] = 200 | leaf_bit;
    EXPECT_EQ(children_of<trie_of>(&node, 64, 14).visits, 2U);
    EXPECT_FALSE(children_of<trie_of>(&node, 64, 14).corrupt());
    EXPECT_TRUE(children_of<trie_of>(&node, 64, 15).corrupt()); // an inner node behind the hash

    const auto top = [](std::uint64_t word) {
        reached_nodes to;
        hash_trie_kind.top(to, nullptr, word, trie_of::shape());
        return to;
    };
    EXPECT_EQ(top(0).visits, 0U);
    EXPECT_FALSE(top(word_of(5, 9)).corrupt());
    EXPECT_TRUE(top(word_of(0, 9)).corrupt());
    EXPECT_TRUE(top(word_of(5, 0)).corrupt());
}

} // namespace
} // namespace hf::mod::test
