// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The standard library's containers by their names in hf, and a root that is constructed.
#include "support.hpp"

#include <holdfast/containers.hpp>
#include <holdfast/root.hpp>
#include <holdfast/statistics.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace language_test {
namespace {

struct shelf {
    hf::map<hf::string, int> amount;
    hf::unordered_map<hf::string, hf::vector<int>> places;
    hf::unordered_set<int> numbers;
    hf::set<hf::string> names;
    hf::list<int> queue;
    hf::deque<int> recent;
    hf::unique_ptr<int> count;
};

void add(const hf::pool& pool, shelf* s, int number) {
    hf::tx(pool, [=] {
        hf::string name = "an article whose name needs a block ";
        name += static_cast<char>('a' + number);
        s->amount[name] += number;
        s->places[name].push_back(number);
        s->numbers.insert(number);
        s->names.insert(name);
        s->queue.push_back(number);
        s->recent.push_front(number);
        if (s->count == nullptr) s->count.reset(hf::make<int>(0));
        ++*s->count;
        if (number == 2) hf::crash_point("added"); // the process looks for its name once
    });
}

using containers = pools;

TEST_F(containers, TheNamesAreContainersOfTheStandardLibraryThatLiveOn) {
    {
        hf::pool pool = open(first);
        for (int number = 0; number < 5; ++number) add(pool, hf::root<shelf>(pool), number);
    }
    hf::pool pool = open(first);
    const shelf& s = *hf::root<shelf>(pool);
    EXPECT_EQ(s.amount.at("an article whose name needs a block e"), 4);
    EXPECT_EQ(s.places.at("an article whose name needs a block c"), (hf::vector<int>{2}));
    EXPECT_EQ(s.numbers.size(), 5U);
    EXPECT_EQ(s.names.size(), 5U);
    EXPECT_EQ(s.queue.back(), 4);
    EXPECT_EQ(s.recent.front(), 4);
    EXPECT_EQ(*s.count, 5);
}

TEST_F(containers, ASectionThatIsKilledLeavesThemAsTheyWere) {
    {
        hf::pool pool = open(first);
        add(pool, hf::root<shelf>(pool), 1);
    }
    EXPECT_EXIT(
        {
            ::setenv("HOLDFAST_CRASH_AT", "added", 1);
            hf::pool pool = open(first);
            add(pool, hf::root<shelf>(pool), 2);
        },
        testing::KilledBySignal(SIGKILL), "");
    hf::pool pool = open(first);
    const shelf& s = *hf::root<shelf>(pool);
    EXPECT_EQ(*s.count, 1);
    EXPECT_EQ(s.amount.size(), 1U);
    EXPECT_EQ(s.places.size(), 1U);
    EXPECT_EQ(s.queue.size(), 1U);
}

struct counted {
    counted() : made(7) { hf::crash_point("half-made"); }
    hf::vector<int> numbers = {1, 2, 3};
    int made;
};

TEST_F(containers, ARootIsConstructedOnce) {
    hf::pool pool = open(first);
    counted* const root = hf::root<counted>(pool);
    ASSERT_NE(root, nullptr);
    EXPECT_EQ(root->made, 7);
    root->made = 8;
    EXPECT_EQ(hf::root<counted>(pool), root);
    EXPECT_EQ(root->made, 8);
}

TEST_F(containers, AKillWhileTheRootIsConstructedLeavesNone) {
    EXPECT_EXIT(
        {
            ::setenv("HOLDFAST_CRASH_AT", "half-made", 1);
            hf::pool pool = open(first);
            hf::root<counted>(pool);
        },
        testing::KilledBySignal(SIGKILL), "");
    hf::pool pool = open(first);
    const counted& root = *hf::root<counted>(pool);
    EXPECT_EQ(root.made, 7);
    EXPECT_EQ(root.numbers.size(), 3U);
}

TEST_F(containers, ARootOfAnotherSizeIsNone) {
    hf::pool pool = open(first);
    ASSERT_NE(hf::root<counted>(pool), nullptr);
    EXPECT_EQ(hf::root<shelf>(pool), nullptr);
}

struct picky {
    explicit picky(int number) : number(number) {
        if (number < 0) throw std::invalid_argument("a number below 0");
    }
    int number;
};

TEST_F(containers, AFullPoolIsAnExceptionAndNothingHasChanged) {
    hf::pool pool = open(first, 128 << 10);
    auto* const list = hf::root<hf::list<std::array<char, 512>>>(pool);
    unsigned long made = 0;
    EXPECT_THROW(for (;; ++made) hf::tx(pool, [=] { list->emplace_back(); }), std::bad_alloc);
    EXPECT_GT(made, 10U);
    EXPECT_EQ(list->size(), made);
    EXPECT_THROW(
        hf::tx(pool, [] { static_cast<void>(hf::make_or_throw<std::array<char, 32768>>()); }),
        std::bad_alloc);
}

TEST_F(containers, AConstructorThatThrowsLeavesNoBlock) {
    hf::pool pool = open(first);
    const std::uint64_t used = hf::statistics_of(pool).used_bytes;
    const bool caught = hf::tx(pool, [] {
        try {
            return hf::make_or_throw<picky>(-1) == nullptr;
        } catch (const std::invalid_argument&) {
            return true;
        }
    });
    EXPECT_TRUE(caught);
    hf::return_spare_blocks(pool);
    EXPECT_EQ(hf::statistics_of(pool).used_bytes, used);
    EXPECT_EQ(hf::tx(pool, [] { return hf::make_or_throw<picky>(3)->number; }), 3);
}

} // namespace
} // namespace language_test
