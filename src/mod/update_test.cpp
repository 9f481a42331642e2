// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Structures changed together: members of a family in one ordering point, unrelated ones in two,
// all or nothing.
#include <mod/test_support.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace hf;
using namespace hf::literals;

class mod_update : public testing::TestWithParam<bool> { // related?
protected:
    mod_update() { in.make_new(mode::pmem, 2_MiB); }
    mod::place at(std::string_view name) const {
        return GetParam() ? mod::place{name, "shop", {"stock", "sold"}} : mod::place{name};
    }

    mod::test::test_pool in;
};

TEST_P(mod_update, changes_all_in_one_section_or_nothing) {
    auto stock = in.get<mod::map<std::string, std::uint32_t>>(at("stock"));
    auto sold = in.get<mod::vector<std::string>>(at("sold"));
    ASSERT_TRUE(stock.insert("apple", 3));
    const auto sell = [&](std::string_view what) {
        return mod::update(std::tie(stock, sold), [&](auto& stock, auto& sold) {
            sold.push_back(what); // even so: nothing is sold when it returns false
            const auto left = stock.get(what);
            if (!left || *left == 0) return false;
            stock.insert_or_assign(what, *left - 1);
            return true;
        });
    };
    ASSERT_TRUE(sell("apple").ok());
    const auto before = persist::thread_counters().ordering_points;
    ASSERT_TRUE(sell("apple").ok());
    EXPECT_EQ(persist::thread_counters().ordering_points - before, GetParam() ? 1U : 2U);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(sell("apple").ok());
    EXPECT_TRUE(sell("pear").ok());
    EXPECT_EQ(sold.size(), 3U);
    EXPECT_EQ(*stock.get("apple"), 0U);
}

TEST_P(mod_update, a_full_pool_changes_neither) {
    auto stock = in.get<mod::map<std::string, std::uint32_t>>(at("stock"));
    auto sold = in.get<mod::vector<std::string>>(at("sold"));
    const std::string large(10'000, 'x');
    std::uint32_t done = 0;
    status s;
    const auto both = [&](auto& stock, auto& sold) {
        stock.insert_or_assign("count", done + 1);
        sold.push_back(large);
    };
    for (; (s = mod::update(std::tie(stock, sold), both)).ok(); ++done) ASSERT_LT(done, 1000U);
    EXPECT_EQ(s.code(), errc::pool_full);
    EXPECT_GT(done, 50U);
    EXPECT_EQ(*stock.get("count"), done);
    EXPECT_EQ(sold.size(), done);
    ASSERT_TRUE(sold.clear().ok());
    EXPECT_TRUE(mod::update(std::tie(stock, sold), both).ok()) << "there is room again";
}

TEST_P(mod_update, a_snapshot_keeps_the_element_that_another_vector_sets) {
    auto stock = in.get<mod::vector<std::uint64_t>>(at("stock"));
    auto sold = in.get<mod::vector<std::uint64_t>>(at("sold"));
    ASSERT_TRUE(stock.append_range(std::vector<std::uint64_t>(20, 7)).ok());
    ASSERT_TRUE(sold.append(stock.snapshot()).ok());
    const auto before = stock.snapshot();
    ASSERT_TRUE(stock.clear().ok()); // its nodes have one parent again, and this version
    for (std::size_t i = 0; i < 20; ++i) ASSERT_TRUE(sold.set(i, i).ok());
    EXPECT_EQ(before.size(), 20U);
    for (const std::uint64_t element : before) EXPECT_EQ(element, 7U);
}

TEST_P(mod_update, what_is_durable_on_return_is_on_the_disk) {
    in.make_new(mode::power);
    using numbers = mod::vector<std::uint64_t>;
    const auto both = [&] {
        auto each = std::pair(in.get<numbers>(at("stock")), in.get<numbers>(at("sold")));
        each.first.set_durability(mod::durability::on_return);
        each.second.set_durability(mod::durability::on_return);
        return each;
    };
    const auto expect_kept = [&](std::uint64_t last_in_stock, std::uint64_t last_in_sold) {
        in.keep_disk();
        in.open_kept();
        auto [stock, sold] = both();
        ASSERT_EQ(stock.size(), 100U);
        ASSERT_EQ(sold.size(), 100U);
        EXPECT_EQ(stock[99], last_in_stock);
        EXPECT_EQ(sold[99], last_in_sold);
    };
    const auto change = [&](const auto& done) {
        auto [stock, sold] = both();
        EXPECT_TRUE(done(stock, sold).ok());
    };
    change([](auto& stock, auto& sold) {
        return mod::update(std::tie(stock, sold), [](auto& in_stock, auto& in_sold) {
            for (auto* each : {&in_stock, &in_sold})
                for (std::uint64_t i = 0; i < 100; ++i) each->push_back(i);
        });
    });
    expect_kept(99, 99);
    change([](auto& stock, auto&) { // a new version
        return stock.assign(std::vector<std::uint64_t>(100, 1));
    });
    expect_kept(1, 99);
    change([](auto&, auto& sold) { return sold.set(99, 2); }); // in place
    expect_kept(1, 2);
}

INSTANTIATE_TEST_SUITE_P(roots, mod_update, testing::Bool(), [](const auto& of) {
    return of.param ? "members_of_a_family" : "unrelated";
});

} // namespace
