// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: each domain issues exactly the events it promises. Method: count and trace them.
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

namespace {

using hf::domain;
namespace trace = hf::trace;
namespace persist = hf::persist;

struct alignas(64) lines {
    std::uint64_t word[64];
};

std::vector<const trace::event*> seen;
void record(const trace::event& what, const void*, std::size_t) { seen.push_back(&what); }

TEST(Persist, AdrFlushesEveryLineTouchedAndFencesOnce) {
    lines l{};
    const auto before = persist::thread_counters();
    persist::persist(domain::adr, &l.word[7], 16); // straddles two lines
    const auto& after = persist::thread_counters();
    EXPECT_EQ(after.flushes - before.flushes, 2U);
    EXPECT_EQ(after.fences - before.fences, 1U);
    EXPECT_EQ(after.ordering_points - before.ordering_points, 1U);
}

TEST(Persist, EadrFencesAndDoesNotFlush) {
    lines l{};
    const auto before = persist::thread_counters();
    persist::persist(domain::eadr, &l, sizeof l);
    const auto& after = persist::thread_counters();
    EXPECT_EQ(after.flushes - before.flushes, 0U);
    EXPECT_EQ(after.fences - before.fences, 1U);
}

TEST(Persist, ProcessDomainIssuesNothingButCountsTheOrderingPoint) {
    lines l{};
    const auto before = persist::thread_counters();
    persist::persist(domain::process, &l, sizeof l);
    const auto& after = persist::thread_counters();
    EXPECT_EQ(after.flushes - before.flushes, 0U);
    EXPECT_EQ(after.fences - before.fences, 0U);
    EXPECT_EQ(after.ordering_points - before.ordering_points, 1U);
}

TEST(Persist, CopyGivesTheSameBytesInEveryDomain) {
    for (domain d : {domain::process, domain::eadr, domain::adr}) {
        lines from{}, to{};
        for (std::uint64_t i = 0; i < 64; ++i) from.word[i] = i * 0x9e3779b97f4a7c15ULL;
        persist::copy(d, &to.word[3], &from.word[5], 37 * 8);
        persist::fence(d);
        EXPECT_EQ(std::memcmp(&to.word[3], &from.word[5], 37 * 8), 0);
        EXPECT_EQ(to.word[2], 0U);
        EXPECT_EQ(to.word[40], 0U);
    }
}

TEST(Persist, ListenersHearEventsInOrder) {
    lines l{};
    seen.clear();
    {
        const trace::listening all(record);
        persist::store_word(domain::adr, &l.word[0], 7);
        persist::copy(domain::adr, &l.word[8], &l.word[0], 8);
        persist::fence(domain::adr);
    }
    const std::vector<const trace::event*> expected{&trace::store, &trace::flush, &trace::nt_store,
                                                    &trace::fence};
    EXPECT_EQ(seen, expected);
}

// The shortest of ten: the machine may be busy.
template <class F> std::chrono::nanoseconds shortest(F f) {
    std::chrono::nanoseconds least = std::chrono::hours(1);
    for (int i = 0; i < 10; ++i) {
        const auto start = std::chrono::steady_clock::now();
        f();
        least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - start);
    }
    return least;
}

TEST(LatencyModel, MakesAFenceLongerByTheLinesItWaitsFor) {
    using std::chrono::microseconds;
    lines l{};
    const auto flush_and_fence = [&] { persist::persist(domain::adr, &l, sizeof l); };
    const auto copy_and_fence = [&] {
        persist::copy(domain::adr, &l.word[0], &l.word[32], 256);
        persist::fence(domain::adr);
    };
    persist::set_latency_model({.first_line_ns = 1e6, .further_line_ns = 5e5});
    persist::fence(domain::adr); // for what tests before this one have flushed
    EXPECT_GE(shortest([&] { persist::persist(domain::adr, &l, 8); }), microseconds(990));
    EXPECT_GE(shortest(flush_and_fence), microseconds(1000 + 7 * 500 - 50));
    EXPECT_GE(shortest(copy_and_fence), microseconds(1000 + 3 * 500 - 30));
    EXPECT_LT(shortest([] { persist::fence(domain::adr); }), microseconds(900));
    EXPECT_LT(shortest([&] { persist::persist(domain::eadr, &l, sizeof l); }), microseconds(900));
    persist::set_latency_model({});
    EXPECT_LT(shortest(flush_and_fence), microseconds(900));
}

} // namespace
