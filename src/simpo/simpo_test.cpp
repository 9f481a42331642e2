// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: objects are found again as the calls on them left them; what a handle promises of order, of
// waiting and of room holds. Method: calls that do not commute, in every mode, beside what they
// must leave.
#include <simpo/test_support.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hf::simpo {
namespace {

using test::digits;

class counted {
public:
    void touch() noexcept { ++touched_; }
    int touched() const noexcept { return touched_; }

private:
    int touched_ = 0;
};
/// A base is of another type than the block that an object lies in: GCC warned of that at -O2.
class counted_digits : public digits, public counted {
public:
    static constexpr class_name simpo_class{"counted_digits", 1};
};

class Simpo : public test::PoolTest {};
INSTANTIATE_TEST_SUITE_P(Modes, Simpo, ::testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& each) { return std::string(name(each.param)); });

TEST_P(Simpo, DeferredCallsAreMadeInTheirOrderBeforeTheNextInstantOne) {
    in.open();
    auto d = in.make<digits>();
    for (const unsigned n : {1U, 2U, 3U}) d.defer<&digits::append>(n);
    EXPECT_EQ(d.call<&digits::append_and_get>(4U), 1234U);
    d.defer<&digits::append>(5);
    EXPECT_EQ(d.call<&digits::number>(), 12345U);
    EXPECT_TRUE(d.call<&digits::sums_to>(15U));
}

TEST_P(Simpo, AnObjectIsFoundAgainByItsNameAndWhatACloseFindsLoggedIsKept) {
    in.open();
    in.make<digits>(std::uint64_t{7}).defer<&digits::append>(1);
    in.open();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 71U);
    EXPECT_EQ(in.pool().recovered().replayed, 0U);
}

TEST_P(Simpo, HandlesOfOneNameAreOfOneObject) {
    in.open();
    auto one = in.make<digits>();
    auto other = in.get<digits>();
    one.defer<&digits::append>(1);
    other.defer<&digits::append>(2);
    EXPECT_EQ(one.call<&digits::number>(), 12U);
    EXPECT_EQ(object<digits>::create(in.pool(), "it").error().code(), errc::exists);
}

TEST_P(Simpo, FunctionsOfBasesAreCalledAndMadeAgain) {
    in.open();
    auto d = in.make<counted_digits>();
    d.defer<&counted_digits::touch>();
    d.defer<&counted_digits::append>(3);
    EXPECT_EQ(d.call<&counted_digits::touched>(), 1);
    in.crash();
    d = in.get<counted_digits>();
    EXPECT_EQ(d.call<&counted_digits::touched>(), 1);
    EXPECT_EQ(d.call<&counted_digits::number>(), 3U);
}

TEST_P(Simpo, ArgumentsOfManyWordsGoRoundTheLogAndAreWhole) {
    in.open();
    auto d = in.make<digits>(object_options{1_KiB});
    std::array<std::uint8_t, 100> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i % 10);
    std::uint64_t calls = 0;
    for (; calls < 500; ++calls) {
        d.defer<&digits::append_all>(all);
        d.defer<&digits::append>(1);
    }
    EXPECT_TRUE(d.call<&digits::sums_to>(calls * 451));
    d.defer<&digits::append_all>(all);
    EXPECT_TRUE(d.call<&digits::sums_to>(calls * 451 + 450));
    in.crash();
    EXPECT_TRUE(in.get<digits>().call<&digits::sums_to>(calls * 451 + 450));
}

TEST_P(Simpo, DeferredCallsWaitForNothingAndInstantOnesOnce) {
    in.open();
    auto d = in.make<digits>();
    const auto points = [] { return persist::thread_counters().ordering_points; };
    const std::uint64_t before = points();
    d.defer<&digits::append>(1);
    d.defer<&digits::append>(2);
    EXPECT_EQ(points(), before);
    (void)d.call<&digits::number>();
    EXPECT_EQ(points(), before + 1);
    (void)d.call<&digits::number>(); // nothing is pending
    d.sync();
    EXPECT_EQ(points(), before + 1);
    (void)d.call<&digits::append_and_get>(3U);
    EXPECT_EQ(points(), before + 2);
}

TEST_P(Simpo, ThreadsDeferSideBySideAndNoCallIsLostOrMadeTwice) {
    in.open();
    auto d = in.make<digits>(object_options{2_KiB}); // full again and again
    constexpr unsigned threads = 4, calls = 2'000;
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            for (unsigned i = 0; i < calls; ++i) {
                d.defer<&digits::append>(t + 1);
                if (i % 97 == t) (void)d.call<&digits::number>();
            }
        });
    for (std::thread& each : all) each.join();
    EXPECT_EQ(d.call<&digits::count>(), threads * calls);
    EXPECT_TRUE(d.call<&digits::sums_to>(calls * 10));
    in.crash();
    EXPECT_TRUE(in.get<digits>().call<&digits::sums_to>(calls * 10));
}

/// A class whose const function throws.
class moody {
public:
    static constexpr class_name simpo_class{"moody", 1};
    void add(std::uint32_t by) noexcept { sum_ += by; }
    std::uint64_t add_last(std::array<std::uint64_t, argument_words_max> of) noexcept {
        return sum_ += of.back();
    }
    std::uint64_t sum() const { throw sum_; }

private:
    std::uint64_t sum_ = 0;
};

/// A checkpoint that was due was left out, and a call behind it found no room in the log.
TEST_P(Simpo, AConstFunctionThatThrowsLeavesRoomInTheLog) {
    in.open();
    auto m = in.make<moody>(object_options{1_KiB});
    std::array<std::uint64_t, argument_words_max> last{};
    last.back() = 1'000;
    std::uint64_t sum = 0;
    for (unsigned calls = 1; calls <= 8; ++calls) { // of 16 lines
        for (unsigned i = 0; i < calls; ++i) m.defer<&moody::add>(1U);
        sum += calls;
        EXPECT_THROW((void)m.call<&moody::sum>(), std::uint64_t) << calls;
        EXPECT_EQ(m.call<&moody::add_last>(last), sum += 1'000);
    }
    in.crash();
    EXPECT_EQ(in.get<moody>().call<&moody::add_last>(last), sum + 1'000);
}

TEST_P(Simpo, RecordsAreNewThenDoneThenResilient) {
    in.open();
    auto d = in.make<digits>();
    const log_array& log = d.internals().log();
    const position at = log.head();
    d.defer<&digits::append>(1);
    EXPECT_EQ(log.state_of(at), record_state::fresh);
    d.sync();
    EXPECT_EQ(log.state_of(at), record_state::done);
    d.checkpoint();
    EXPECT_EQ(log.state_of(at), record_state::resilient);
    EXPECT_EQ(log.tail(), log.head());
}

TEST_P(Simpo, ACheckpointWritesOnlyPiecesThatChanged) {
    in.open();
    auto d = in.make<digits>();
    const auto bytes_of_next = [&] {
        d.defer<&digits::append>(1);
        d.sync();
        const std::uint64_t before = persist::thread_counters().pm_bytes;
        d.checkpoint();
        return persist::thread_counters().pm_bytes - before;
    };
    const std::uint64_t whole = bytes_of_next(); // the other copy holds nothing yet
    EXPECT_GE(whole, sizeof(digits));
    EXPECT_LE(bytes_of_next(), 512U);
}

TEST_P(Simpo, ADestroyedObjectsMemoryAndNameAreFreeAgain) {
    in.open();
    std::set<const void*> places;
    for (int i = 0; i < 20; ++i) {
        auto d = in.make<digits>(std::uint64_t{1});
        places.insert(&d.internals().head());
        d.defer<&digits::append>(2);
        if (i % 2 == 0) d.sync();
        ASSERT_TRUE(object<digits>::destroy(in.pool(), "it").ok());
        EXPECT_EQ(object<digits>::find(in.pool(), "it").error().code(), errc::not_found);
        if (i % 5 == 4) in.crash();
    }
    EXPECT_LT(places.size(), 20U);
    EXPECT_EQ(in.make<digits>().call<&digits::number>(), 0U); // nothing of the others' logs
    in.crash();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 0U);
}

struct large {
    static constexpr class_name simpo_class{"large", 1};
    void set(std::uint32_t at, std::uint64_t to) noexcept { cells[at % cells.size()] = to; }
    std::uint64_t at(std::uint32_t i) const { return cells[i % cells.size()]; }
    std::array<std::uint64_t, 1 << 17> cells; // of 1 MiB
};

TEST_P(Simpo, LargeObjectsLieInRunsOfChunks) {
    in.open();
    for (int round = 0; round < 3; ++round) {
        auto big = in.make<large>();
        for (std::uint32_t i = 0; i < 4'000; ++i) big.defer<&large::set>(i * 31, i + 1);
        big.sync();
        in.crash();
        EXPECT_EQ(in.get<large>().call<&large::at>(31U * 3'999), 4'000U);
        ASSERT_TRUE(object<large>::destroy(in.pool(), "it").ok());
    }
}

// Chunks of 64 KiB have size classes that are not whole lines, such as 6 544.
TEST_P(Simpo, ObjectsThatShareAChunkBeginAtLines) {
    in.how.create_bytes = 16_MiB;
    in.open();
    const auto name_of = [](unsigned n) { return "it " + std::to_string(n); };
    constexpr unsigned many = 60;
    for (unsigned n = 0; n < many; ++n) {
        const object_options how{.log_bytes = 1_KiB << n % 5, .callers = n % 7};
        auto made = object<digits>::create(in.pool(), name_of(n), how, std::uint64_t{n});
        ASSERT_TRUE(made) << made.error().what();
    }
    in.close();
    const status opened = in.try_open();
    ASSERT_TRUE(opened.ok()) << opened.what();
    for (unsigned n = 0; n < many; ++n)
        EXPECT_EQ(object<digits>::find(in.pool(), name_of(n))->call<&digits::number>(), n);
    in.crash();
    for (unsigned n = 0; n < many; ++n)
        ASSERT_TRUE(object<digits>::destroy(in.pool(), name_of(n)).ok());
}

TEST_P(Simpo, AFullPoolRefusesAnObjectAndKeepsTheOthers) {
    in.how.max_bytes = in.how.create_bytes = 4_MiB;
    in.open();
    auto d = in.make<digits>();
    d.defer<&digits::append>(4);
    const auto refused = object<large>::create(in.pool(), "second", object_options{2_MiB});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::pool_full) << refused.error().what();
    EXPECT_EQ(d.call<&digits::number>(), 4U);
    in.crash();
    EXPECT_EQ(in.get<digits>().call<&digits::number>(), 4U);
}

/// Rows that have nothing in common, and a number of all of them.
class rows {
public:
    static constexpr class_name simpo_class{"rows", 1};
    static constexpr std::uint32_t count =
        6; // of hints 1 to 4, 17 and 33: some of them share a queue
    static constexpr std::array<std::uint16_t, count> hints{1, 2, 3, 4, 17, 33};
    void append(std::uint32_t row, std::uint64_t n) noexcept {
        row_& its = rows_[row % count];
        its.hash = (its.hash ^ n) * 0x100000001b3ULL;
        ++its.calls;
    }
    void join() noexcept {
        for (const row_& its : rows_) all_ = (all_ ^ its.hash) * 0x100000001b3ULL + its.calls;
    }
    std::uint64_t all() const { return all_; }

private:
    struct alignas(64) row_ {
        std::uint64_t hash = 1, calls = 0;
    };
    std::array<row_, count> rows_{};
    std::uint64_t all_ = 0;
};

TEST_P(Simpo, HintedCallsThatWaitingThreadsHelpWithAreMadeInTheOrderOfTheirHint) {
    in.open();
    auto r = in.make<rows>(object_options{4_KiB});
    // Rows are the threads' own, so that what each must be is known; anybody's join is a barrier
    // for all.
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < 3; ++t)
        threads.emplace_back([r, t]() mutable {
            for (std::uint64_t i = 0; i < 4000; ++i) {
                const std::uint32_t row = 2 * t + i % 2;
                r.defer_beside<&rows::append>(hint{rows::hints[row]}, row, i);
                if (i % 100 == 0) r.sync();
            }
        });
    for (std::thread& each : threads) each.join();
    r.defer<&rows::join>();
    rows model;
    for (std::uint32_t t = 0; t < 3; ++t)
        for (std::uint64_t i = 0; i < 4000; ++i) model.append(2 * t + i % 2, i);
    model.join();
    EXPECT_EQ(r.call<&rows::all>(), model.all());
    in.crash();
    EXPECT_EQ(in.get<rows>().call<&rows::all>(), model.all());
}

TEST_P(Simpo, ACallWithoutAHintWaitsForThoseBeforeItAndIsWaitedFor) {
    in.open();
    auto r = in.make<rows>(object_options{2_KiB});
    std::atomic<bool> stop{false};
    std::thread waits([&, r]() mutable { // so that some thread helps
        while (!stop.load()) r.sync();
    });
    rows model;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        const std::uint32_t row = i % rows::count;
        r.defer_beside<&rows::append>(hint{rows::hints[row]}, row, i);
        model.append(row, i);
        if (i % 7 != 0) continue;
        r.defer<&rows::join>();
        model.join();
    }
    stop.store(true);
    waits.join();
    EXPECT_EQ(r.call<&rows::all>(), model.all());
    in.crash();
    EXPECT_EQ(in.get<rows>().call<&rows::all>(), model.all());
}

} // namespace
} // namespace hf::simpo
