// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: each structure of holdfast/simpo/ is the textbook's, and is found after a crash as
// committed calls left it. Method: random calls on a persistent object and on the standard
// library's counterpart; the pool is let go of again and again, with a tail that was never
// committed and must not come back.
#include <simpo/test_support.hpp>

#include <holdfast/simpo/array.hpp>
#include <holdfast/simpo/graph.hpp>
#include <holdfast/simpo/heap.hpp>
#include <holdfast/simpo/queue.hpp>
#include <holdfast/simpo/stack.hpp>
#include <holdfast/simpo/tree.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <queue>
#include <random>
#include <set>
#include <vector>

namespace hf::simpo {
namespace {

constexpr int rounds = 20, calls = 200;

class Structures : public test::PoolTest {
protected:
    unsigned below(unsigned n) { return static_cast<unsigned>(random_() % n); }
    /// Calls each(object) often, then compare(object); and again behind a crash, each time.
    template <class T, class Each, class Compare, class Tail>
    void try_out(const Each& each, const Compare& compare, const Tail& tail) {
        in.open();
        in.make<T>(object_options{2_KiB});
        for (int round = 0; round < rounds; ++round) {
            auto it = in.get<T>();
            for (int i = 0; i < calls; ++i) each(it);
            it.sync();
            if (round % 3 == 0) it.checkpoint();
            compare(it);
            tail(it);
            in.crash();
            auto again = in.get<T>();
            compare(again);
        }
    }

private:
    std::mt19937 random_{20261125};
};
INSTANTIATE_TEST_SUITE_P(Modes, Structures, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(Structures, AnArrayChangesAllAtOnce) {
    using type = array<std::int64_t, 100>;
    std::array<std::int64_t, 100> model{};
    try_out<type>(
        [&](object<type>& it) {
            const unsigned what = below(40), index = below(120);
            if (what == 0) {
                it.defer<&type::zero>();
                model.fill(0);
            } else if (what < 20) {
                it.defer<&type::increase_all>(what);
                for (auto& each : model) each += what;
            } else {
                it.defer<&type::set>(index, -std::int64_t{what});
                if (index < model.size()) model[index] = -std::int64_t{what};
            }
        },
        [&](object<type>& it) {
            for (unsigned i = 0; i < 120; ++i)
                EXPECT_EQ(it.call<&type::get>(i), i < model.size() ? model[i] : 0) << i;
        },
        [](object<type>& it) { it.defer<&type::increase_all>(1); });
}

TEST_P(Structures, AQueueGivesTheOldestFirst) {
    using type = queue<std::uint32_t, 33>;
    std::deque<std::uint32_t> model;
    try_out<type>(
        [&](object<type>& it) {
            const unsigned what = below(100);
            const bool full = model.size() == 33;
            if (what < 50) {
                it.defer<&type::enqueue>(what);
                if (!full) model.push_back(what);
            } else if (what < 60) {
                EXPECT_EQ(it.call<&type::try_enqueue>(what), !full);
                if (!full) model.push_back(what);
            } else if (what < 99) {
                const auto taken = it.call<&type::dequeue>();
                ASSERT_EQ(taken.has_value(), !model.empty());
                if (!taken) return;
                EXPECT_EQ(*taken, model.front());
                model.pop_front();
            } else {
                it.defer<&type::clear>();
                model.clear();
            }
        },
        [&](object<type>& it) {
            EXPECT_EQ(it.call<&type::count>(), model.size());
            EXPECT_EQ(it.call<&type::is_empty>(), model.empty());
            EXPECT_EQ(it.call<&type::is_full>(), model.size() == 33);
        },
        [](object<type>& it) { it.defer<&type::clear>(); });
}

TEST_P(Structures, AHeapGivesTheGreatestFirst) {
    using type = heap<double, 50>;
    std::priority_queue<double> model;
    try_out<type>(
        [&](object<type>& it) {
            const double value = below(1000) / 7.0;
            if (below(2) == 0) {
                it.defer<&type::enheap>(value);
                if (model.size() < 50) model.push(value);
                return;
            }
            const auto taken = it.call<&type::deheap>();
            ASSERT_EQ(taken.has_value(), !model.empty());
            if (!taken) return;
            EXPECT_EQ(*taken, model.top());
            model.pop();
        },
        [&](object<type>& it) { EXPECT_EQ(it.call<&type::count>(), model.size()); },
        [](object<type>& it) { it.defer<&type::enheap>(1e9); });
}

TEST_P(Structures, AStackGivesTheNewestFirst) {
    using type = stack<std::int16_t, 20>;
    std::vector<std::int16_t> model;
    try_out<type>(
        [&](object<type>& it) {
            const auto value = static_cast<std::int16_t>(below(1000));
            if (below(9) < 5) {
                it.defer<&type::push>(value);
                if (model.size() < 20) model.push_back(value);
                return;
            }
            const auto taken = it.call<&type::pop>();
            ASSERT_EQ(taken.has_value(), !model.empty());
            if (!taken) return;
            EXPECT_EQ(*taken, model.back());
            model.pop_back();
        },
        [&](object<type>& it) {
            EXPECT_EQ(it.call<&type::count>(), model.size());
            const auto top = it.call<&type::peek>();
            ASSERT_EQ(top.has_value(), !model.empty());
            if (top) EXPECT_EQ(*top, model.back());
            EXPECT_EQ(it.call<&type::is_empty>(), model.empty());
        },
        [](object<type>& it) { it.defer<&type::push>(std::int16_t{-1}); });
}

TEST_P(Structures, ATreeHasWhatWasInsertedAndNotRemoved) {
    using type = tree<std::uint32_t, 60>;
    std::set<std::uint32_t> model;
    try_out<type>(
        [&](object<type>& it) {
            const unsigned value = below(80), what = below(100);
            if (what < 55) {
                it.defer<&type::insert>(value);
                if (model.size() < 60) model.insert(value);
            } else if (what < 97) {
                it.defer<&type::remove>(value);
                model.erase(value);
            } else {
                it.defer<&type::balance>();
            }
        },
        [&](object<type>& it) {
            EXPECT_EQ(it.call<&type::count>(), model.size());
            for (std::uint32_t value = 0; value < 80; ++value)
                EXPECT_EQ(it.call<&type::contains>(value), model.contains(value)) << value;
        },
        [](object<type>& it) { it.defer<&type::remove>(7U); });
}

TEST(TreeOfSimpo, BalancingMakesItAsLowAsSoManyValuesCanBe) {
    for (std::uint32_t count = 0; count <= 300; ++count) {
        tree<std::uint32_t, 300> t;
        for (std::uint32_t value = 0; value < count; ++value) t.insert(value); // a list
        t.balance();
        std::uint32_t height = 0, found = 0;
        for (std::uint32_t value = 0; value < count; ++value) {
            const std::uint32_t depth = t.depth_of(value);
            height = std::max(height, depth);
            found += depth != 0;
        }
        EXPECT_EQ(found, count);
        EXPECT_EQ(height, std::bit_width(count)) << count;
    }
}

/// A tree that had one could neither take nor find any other value; removing one removed the root.
TEST(StructuresOfSimpo, WhatSortsTakesNoNaN) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    tree<double, 10> t;
    heap<double, 10> h;
    for (const double value : {nan, 2.0, -1.0, nan, 3.0}) {
        t.insert(value);
        h.enheap(value);
    }
    t.remove(nan);
    EXPECT_EQ(t.count(), 3U);
    EXPECT_FALSE(t.contains(nan));
    EXPECT_EQ(t.depth_of(nan), 0U);
    for (const double value : {3.0, 2.0, -1.0}) {
        EXPECT_TRUE(t.contains(value)) << value;
        EXPECT_EQ(h.deheap(), value);
    }
    EXPECT_EQ(h.deheap(), std::nullopt);
}

TEST(StructuresOfSimpo, AnArraysIntegersGoRound) {
    const auto past_the_end = []<class T>(T) {
        array<T, 2> a;
        a.set(1, std::numeric_limits<T>::max());
        a.increase_all(T{2});
        EXPECT_EQ(a.get(0), T{2});
        EXPECT_EQ(a.get(1), static_cast<T>(std::numeric_limits<T>::min() + 1));
        a.increase_all(static_cast<T>(-2)); // for signed ones: down again
        EXPECT_EQ(a.get(1), std::numeric_limits<T>::max());
    };
    past_the_end(std::int8_t{});
    past_the_end(std::uint16_t{});
    past_the_end(std::int32_t{});
    past_the_end(std::int64_t{});
    past_the_end(std::uint64_t{});
}

TEST_P(Structures, AGraphHasTheEdgesThatWereJoined) {
    using type = graph<12>;
    std::array<std::array<double, 12>, 12> model;
    for (auto& row : model) row.fill(type::none);
    try_out<type>(
        [&](object<type>& it) {
            const unsigned from = below(13), to = below(13), weight = below(10);
            if (weight < 6) it.defer<&type::join>(from, to, weight / 2.0);
            else it.defer<&type::separate>(from, to);
            if (from < 12 && to < 12) model[from][to] = weight < 6 ? weight / 2.0 : type::none;
        },
        [&](object<type>& it) {
            for (unsigned from = 0; from < 13; ++from)
                for (unsigned to = 0; to < 13; ++to) {
                    const double weight = from < 12 && to < 12 ? model[from][to] : type::none;
                    EXPECT_EQ(it.call<&type::weight>(from, to), weight);
                    EXPECT_EQ(it.call<&type::adjacent>(from, to), weight != type::none);
                }
        },
        [](object<type>& it) { it.defer<&type::separate>(1U, 2U); });
}

TEST_P(Structures, WaysThatWereShortenedByEveryVertexAreTheShortest) {
    using type = graph<12>;
    in.open();
    auto it = in.make<type>();
    for (unsigned i = 0; i < 12; ++i) it.defer<&type::join>(i, (i + 1) % 12, 1.0); // a ring
    it.defer<&type::join>(0U, 6U, 2.5);
    for (unsigned middle = 0; middle < 6; ++middle) it.defer<&type::shorten_by>(middle);
    it.sync();
    in.crash();
    auto again = in.get<type>();
    for (unsigned middle = 6; middle < 12; ++middle) again.defer<&type::shorten_by>(middle);
    EXPECT_EQ(again.call<&type::weight>(0U, 5U), 5.0);
    EXPECT_EQ(again.call<&type::weight>(0U, 7U), 3.5);
    EXPECT_EQ(again.call<&type::weight>(11U, 8U), 5.5);
}

TEST(StructuresOfSimpo, EachInstantiationHasANameOfItsOwn) {
    const auto is = [](const char* text, const class_name& name) { EXPECT_STREQ(name.text, text); };
    is("array<i8,1024>", array<std::int64_t, 1024>::simpo_class);
    is("queue<u4,33>", queue<std::uint32_t, 33>::simpo_class);
    is("heap<f8,50>", heap<double, 50>::simpo_class);
    is("stack<b1,7>", stack<bool, 7>::simpo_class);
    is("graph<12>", graph<12>::simpo_class);
}

/// A name of the user's own, for values whose text would be another one's.
struct job {
    std::uint32_t number, priority;
    bool operator<(const job& than) const { return priority < than.priority; }
};
class jobs : public heap<job, 10> {
public:
    static constexpr class_name simpo_class{"jobs", 1};
};

TEST_P(Structures, AClassThatDerivesFromOneHasItsOwnName) {
    in.open();
    auto it = in.make<jobs>();
    it.defer<&jobs::enheap>(job{1, 5});
    it.defer<&jobs::enheap>(job{2, 9});
    it.sync();
    in.crash();
    EXPECT_EQ(in.get<jobs>().call<&jobs::deheap>()->number, 2U);
}

/// Long numbers came out as 1.23457e+06, and a heap of a class that is not a number did not
/// compile.
TEST(StructuresOfSimpo, PrintingHasAllDigitsOrBytes) {
    const auto printed = [](const auto& what) {
        ::testing::internal::CaptureStdout();
        what.print_all();
        return ::testing::internal::GetCapturedStdout();
    };
    array<std::int64_t, 2> a;
    a.set(0, -1'234'567'890'123'456'789);
    EXPECT_EQ(printed(a), "-1234567890123456789\n0\n");
    heap<double, 3> h;
    h.enheap(0.25);
    h.enheap(123456789.0);
    EXPECT_EQ(printed(h), "123456789\n0.25\n");
    jobs j;
    j.enheap(job{1, 5});
    EXPECT_EQ(printed(j), "0100000005000000\n");
}

} // namespace
} // namespace hf::simpo
