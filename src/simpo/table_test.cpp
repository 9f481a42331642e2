// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: every object of a pool can be found, dropped and made another one, whether or not its class
// is still there, and no memory is lost. Method: classes of two versions in one program; the heap's
// account before and after.
#include <simpo/test_support.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/simpo/caller.hpp>
#include <holdfast/simpo/table.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

namespace hf::simpo {
namespace {

using test::digits;
using u64 = std::uint64_t;

/// The same class before and after its program was changed.
template <u64 Cells, std::uint32_t Version> class row {
public:
    static constexpr class_name simpo_class{"row", Version};
    row() = default;
    template <u64 Other, std::uint32_t OtherVersion>
    explicit row(const row<Other, OtherVersion>& was) : times_(was.times()) {
        for (u64 i = 0; i < Cells; ++i) cells_[i] = i < Other ? was.cell(i) : 0;
    }
    void add(u64 n) noexcept {
        ++times_;
        for (u64& c : cells_) c += n;
    }
    u64 times() const noexcept { return times_; }
    u64 cell(u64 at) const noexcept { return cells_[at]; }

private:
    std::array<u64, Cells> cells_{};
    u64 times_ = 0;
};
using row_1 = row<4, 1>;
using row_2 = row<900, 2>;
template <class T> constexpr auto convert = [](const auto& was) { return T(was); };

class SimpoTable : public test::PoolTest {
protected:
    u64 used() { return account(in.pool()).block_bytes; }
};
INSTANTIATE_TEST_SUITE_P(Modes, SimpoTable,
                         ::testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST(SimpoPower, WhatReturnedIsOnTheDisk) {
    test::test_pool in;
    in.how.mode = mode::power;
    in.open();
    in.make<digits>();
    in.fail_power();
    ASSERT_TRUE(object<digits>::find(in.pool(), "it"));
    in.get<digits>().defer<&digits::append>(1);
    in.get<digits>().sync();
    in.fail_power();
    EXPECT_EQ(in.get<digits>().call<&digits::append_and_get>(2U), 12U);
    in.fail_power();
    ASSERT_TRUE((remake<digits, digits>(in.pool(), "it", {}, convert<digits>)));
    in.fail_power();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 12U);
    ASSERT_TRUE(object<digits>::destroy(in.pool(), "it").ok());
    in.fail_power();
    EXPECT_TRUE(list(in.pool())->empty());
}

TEST_P(SimpoTable, ListsWhatIsThere) {
    in.open();
    EXPECT_TRUE(list(in.pool())->empty());
    in.make<digits>(
        object_options{.log_bytes = 4_KiB, .callers = 2, .results = 3, .result_bytes = 10});
    EXPECT_TRUE(object<row_1>::create(in.pool(), "row"));
    EXPECT_TRUE(object<row_1>::create(in.pool(), "gone"));
    EXPECT_TRUE(object<row_1>::destroy(in.pool(), "gone").ok());
    for (int i = 0; i < 2; ++i) {
        const auto all = *list(in.pool());
        ASSERT_EQ(all.size(), 2U);
        EXPECT_EQ(all[0].name, "it");
        EXPECT_EQ(all[0].class_text, "digits");
        EXPECT_EQ(all[0].object_bytes, sizeof(digits));
        EXPECT_EQ(all[0].log_bytes, 4_KiB);
        EXPECT_EQ(all[0].callers, 2U);
        EXPECT_EQ(all[0].results, 3U);
        EXPECT_EQ(all[0].result_bytes, 16U);
        EXPECT_GE(all[0].block_bytes, 2 * sizeof(digits) + 4_KiB);
        EXPECT_EQ(all[1].name, "row");
        EXPECT_EQ(all[1].class_version, 1U);
        EXPECT_EQ(all[1].callers, 0U);
        in.crash();
    }
}

TEST_P(SimpoTable, DropsWhatNoClassIsLeftOf) {
    in.open();
    in.make<digits>();
    const u64 before = used();
    EXPECT_TRUE(object<row_1>::create(in.pool(), "row"));
    EXPECT_EQ(object<row_2>::destroy(in.pool(), "row").code(), errc::wrong_layout);
    EXPECT_TRUE(drop(in.pool(), "row").ok());
    EXPECT_EQ(drop(in.pool(), "row").code(), errc::not_found);
    EXPECT_EQ(used(), before);
    in.crash();
    EXPECT_EQ(used(), before);
    EXPECT_EQ(list(in.pool())->size(), 1U);
    in.how.read_only = true;
    in.open();
    EXPECT_EQ(drop(in.pool(), "it").code(), errc::permission);
}

TEST_P(SimpoTable, AConversionMayLookForOtherObjects) {
    in.open();
    in.make<row_1>().defer<&row_1::add>(u64{2});
    const auto look = [&](const row_1& was) {
        auto other = object<digits>::create(in.pool(), "other", u64{5});
        EXPECT_EQ(other->call<&digits::number>(), 5U);
        EXPECT_EQ(list(in.pool())->size(), 2U);
        return row_2(was);
    };
    auto made = remake<row_2, row_1>(in.pool(), "it", {}, look);
    ASSERT_TRUE(made) << made.error().what();
    EXPECT_EQ(made->call<&row_2::times>(), 1U);
    const auto drop_it = [&](const row_2& was) {
        const row_1 made(was);
        EXPECT_TRUE(drop(in.pool(), "it").ok());
        return made;
    };
    EXPECT_EQ((remake<row_1, row_2>(in.pool(), "it", {}, drop_it)).error().code(), errc::not_found);
    in.crash();
    EXPECT_EQ(list(in.pool())->size(), 1U);
}

TEST_P(SimpoTable, AnObjectBecomesOneOfAnotherVersionAndSize) {
    in.open();
    in.make<row_1>();
    u64 times = 0;
    for (int i = 0; i < 6; ++i) {
        in.get<row_1>().defer<&row_1::add>(u64{2}); // pending
        ++times;
        auto two = remake<row_2, row_1>(in.pool(), "it", {.log_bytes = 2_KiB}, convert<row_2>);
        ASSERT_TRUE(two) << two.error().what();
        if (i % 2 == 0) in.crash(), two = object<row_2>::find(in.pool(), "it");
        EXPECT_EQ(two->call<&row_2::times>(), times);
        EXPECT_EQ(two->call<&row_2::cell>(u64{3}), 2 * times);
        EXPECT_EQ(two->call<&row_2::cell>(u64{800}), 0U);
        EXPECT_EQ(object<row_1>::find(in.pool(), "it").error().code(), errc::wrong_layout);
        two->defer<&row_2::add>(u64{2});
        two->sync();
        ++times;
        in.crash(); // its group is replayed by the class that it is of now
        EXPECT_EQ(in.pool().recovered().replayed, 1U);
        const u64 before = used();
        ASSERT_TRUE((remake<row_1, row_2>(in.pool(), "it", {.log_bytes = 1_KiB}, convert<row_1>)));
        EXPECT_LT(used(), before);
        EXPECT_EQ(in.get<row_1>().call<&row_1::times>(), times);
        EXPECT_EQ(list(in.pool())->size(), 1U);
    }
    EXPECT_EQ((remake<row_1, row_2>(in.pool(), "it", {}, convert<row_1>)).error().code(),
              errc::wrong_layout);
    EXPECT_EQ((remake<row_1, row_1>(in.pool(), "none", {}, convert<row_1>)).error().code(),
              errc::not_found);
    EXPECT_EQ(
        (remake<row_1, row_1>(in.pool(), "it", {.log_bytes = 1}, convert<row_1>)).error().code(),
        errc::bad_argument);
    EXPECT_EQ((remake<row_1, row_1>(in.pool(), "it", {.log_bytes = 512_MiB}, convert<row_1>))
                  .error()
                  .code(),
              errc::pool_full);
    EXPECT_EQ(in.get<row_1>().call<&row_1::times>(), times);
}

} // namespace
} // namespace hf::simpo
