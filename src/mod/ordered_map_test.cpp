// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: mod::ordered_map is std::map, whatever the types, the order and the mode. Method: the
// generic suite, which compares orders and bounds as well, and what only ordered maps promise:
// orders of their own, ranges, shapes, counts that verification finds wrong.
#include <mod/keyed_suite.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/update.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ranges>
#include <string>

namespace hf::mod::test {
namespace {

using value = words<4>;
using large = words<30>; // three to an inner node, were there not four at least
using aligned = words<2, 16>;
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

using number_map = mod::ordered_map<std::uint64_t, value>;
using text_map = mod::ordered_map<std::string, std::string>;
using plain_map = mod::ordered_map<std::uint64_t, std::uint64_t>;

static_assert(std::bidirectional_iterator<number_map::iterator>);
static_assert(std::ranges::bidirectional_range<const number_map>);
static_assert(std::ranges::bidirectional_range<text_map::version>);
static_assert(std::ranges::bidirectional_range<const text_map::batch>);
static_assert(std::is_same_v<number_map::found_value, const value*>);

using each_form = testing::Types<
    keyed<number_map, 3000, 3000>, keyed<number_map, 10, 1000>,
    keyed<mod::ordered_map<std::int32_t, std::uint8_t, mod::greater<std::int32_t>>, 500, 1500>,
    keyed<mod::ordered_map<std::uint64_t, std::uint64_t, by_last_digit>, 500, 1500>,
    keyed<text_map, 500, 1500>,
    keyed<mod::ordered_map<std::string, std::uint32_t, mod::greater<std::string>>, 500, 1000>,
    keyed<mod::ordered_map<std::uint32_t, std::string>, 500, 1500>,
    keyed<mod::ordered_map<std::uint8_t, empty>, 3000, 1500>,
    keyed<mod::ordered_map<aligned, aligned>, 500, 1500>,
    keyed<mod::ordered_map<large, std::uint8_t>, 200, 800>,
    keyed<mod::ordered_map<std::uint64_t, large>, 200, 800>>;
INSTANTIATE_TYPED_TEST_SUITE_P(OrderedMaps, ElementTest, each_form);
using main_forms = testing::Types<keyed<number_map, 300, 0>, keyed<text_map, 300, 0>>;
INSTANTIATE_TYPED_TEST_SUITE_P(OrderedMaps, ContainerTest, main_forms);
using of_numbers = testing::Types<keyed<plain_map, 1, 0>>;
INSTANTIATE_TYPED_TEST_SUITE_P(OrderedMaps, NumbersTest, of_numbers);

class OrderedMapTest : public PoolTest {
protected:
    void SetUp() override { in.make_new(GetParam()); }
    void expect_nodes(std::initializer_list<const mod::root*> roots) {
        EXPECT_EQ(in.nodes_in_use(), nodes_of(mod::detail::bplus_tree_kind, roots));
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, OrderedMapTest, testing::ValuesIn(both_modes), mode_name);

TEST_P(OrderedMapTest, what_changes_nothing_has_no_ordering_point) {
    expect_points_of_changes(in.get<number_map>());
}

TEST_P(OrderedMapTest, looks_up_what_is_like_a_key) {
    auto map = in.get<mod::ordered_map<std::uint64_t, int, by_last_digit>>();
    for (const std::uint64_t n : {5, 13, 23, 7}) ASSERT_TRUE(told(map.insert(n, int(n))));
    EXPECT_TRUE(map.contains(last_digit{3}) && !map.contains(last_digit{4}));
    EXPECT_EQ(map.find(last_digit{3})->first, 13U);
    EXPECT_EQ(*map.get(last_digit{5}), 5);
    EXPECT_EQ(std::distance(map.lower_bound(last_digit{3}), map.upper_bound(last_digit{3})), 2);
    auto texts = in.get<text_map>({"texts"});
    ASSERT_TRUE(told(texts.insert("one", "eins")));
    EXPECT_EQ(texts.get(std::string_view("one")), "eins");
    EXPECT_EQ(texts.get("two"), std::nullopt);
}

TEST_P(OrderedMapTest, serves_the_standard_algorithms) {
    auto map = in.get<mod::ordered_map<std::string, std::uint32_t>>();
    for (std::uint32_t i = 100; i < 200; ++i) ASSERT_TRUE(told(map.insert(std::to_string(i), i)));
    const std::map<std::string, std::uint32_t> copied(map.begin(), map.end());
    ASSERT_EQ(copied.size(), map.size());
    EXPECT_TRUE(std::ranges::equal(map, copied, [](const auto& a, const auto& b) {
        return a.first == b.first && a.second == b.second;
    }));
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

TEST_P(OrderedMapTest, what_a_batch_reads_may_be_given_to_it) {
    auto map = in.get<text_map>();
    const auto committed = map.update([](auto& batch) {
        for (std::uint64_t i = 1000; i < 3000; ++i)
            batch.insert(std::to_string(i), std::to_string(i));
        batch.insert_or_assign("2999", *batch.get("1000"));
        EXPECT_EQ(batch.erase(batch.first().first, batch.last().first), 1999U);
    });
    ASSERT_TRUE(committed.ok()) << committed.what();
    EXPECT_TRUE(map.size() == 1 && map.get("2999") == "1000");
    expect_nodes({map.its_root()});

    auto numbers = in.get<number_map>({"numbers"});
    const auto erased = numbers.update([](auto& batch) {
        for (std::uint64_t i = 0; i < 100; ++i) batch.insert(i, {});
        EXPECT_EQ(batch.erase(18, 21), 3U); // a leaf is left as long as an inner node
        EXPECT_EQ(batch.erase(batch.find(22)->first, 90), 68U);
    });
    ASSERT_TRUE(erased.ok()) << erased.what();
    EXPECT_EQ(numbers.size(), 29U);
    EXPECT_TRUE(numbers.contains(21) && numbers.lower_bound(22)->first == 90);
}

TEST_P(OrderedMapTest, another_shape_is_another_layout) {
    using std::uint32_t, std::uint64_t;
    (void)in.get<mod::ordered_map<uint64_t, uint64_t>>({"map"});
    EXPECT_TRUE(is_wrong_layout(mod::ordered_map<uint64_t, uint32_t>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(mod::ordered_map<uint64_t, std::string>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(
        mod::ordered_map<uint64_t, uint64_t, mod::greater<uint64_t>>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(
        mod::ordered_map<uint64_t, uint64_t, by_last_digit>::open(in.pool(), {"map"})));
    EXPECT_TRUE(is_wrong_layout(mod::map<uint64_t, uint64_t>::open(in.pool(), {"map"})));
}

TEST_P(OrderedMapTest, verification_finds_counts_that_cannot_be) {
    auto map = in.get<text_map>();
    for (std::uint64_t i = 0; i < 500; ++i)
        ASSERT_TRUE(told(map.insert(made_of<std::string>(i), made_of<std::string>(i))));
    ASSERT_TRUE(in.store().collect().ok());
    mod::ref node = mod::detail::ordered::top_of(map.word());
    for (;;) { // at every level
        auto* const count =
            const_cast<std::uint32_t*>(mod::detail::node_at<std::uint32_t>(map.base(), node));
        const std::uint32_t right = *count;
        for (const std::uint32_t wrong : {0U, right + 20, ~0U}) {
            *count = wrong;
            EXPECT_EQ(in.store().verify().code(), hf::errc::corrupt) << wrong;
        }
        *count = right;
        EXPECT_TRUE(in.store().verify().ok());
        if ((node & mod::detail::ordered::leaf_bit) != 0) break;
        node = count[1 + right]; // keys are refs of blobs, then come the children
    }
}

TEST_P(OrderedMapTest, maps_of_both_kinds_change_together) {
    auto names = in.get<mod::map<std::uint64_t, std::string>>({"names"});
    auto ages = in.get<mod::ordered_map<std::uint32_t, std::uint64_t>>({"ages"});
    const auto names_next = names.snapshot().insert(1, "Ada");
    const auto ages_next = ages.snapshot().insert(36, 1);
    const auto done =
        in.store().commit({{names.its_root(), &names_next}, {ages.its_root(), &ages_next}});
    ASSERT_TRUE(done.ok()) << done.what();
    EXPECT_EQ(names.get(*ages.get(36)), "Ada");
    const auto renamed = mod::update(std::tie(names, ages), [](auto& names, auto& ages) {
        names.erase(1);
        return ages.insert_or_assign(37, 1);
    });
    ASSERT_TRUE(renamed.ok()) << renamed.what();
    EXPECT_TRUE(names.empty() && ages.contains(37));
}

TEST(OrderedMapVersion, of_no_map_is_empty) {
    const text_map::version none;
    EXPECT_TRUE(none.empty() && none.begin() == none.end() && !none.contains("2"));
    EXPECT_TRUE(none.lower_bound("2") == none.end());
}

} // namespace
} // namespace hf::mod::test
