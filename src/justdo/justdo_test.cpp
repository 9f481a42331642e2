// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section that is stopped at any of its points ends, after the next open, as if it had not
// been stopped; many sections at once do, too, whatever locks they wait for. A section that cannot
// be resumed is refused in words. Method: functions as a compiler would leave them
// (test_support.hpp), stopped by a jump out of their thread; the pool is abandoned as in a crash.
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/justdo.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
namespace by_hand = hf::justdo::by_hand;
using namespace by_hand;

struct root {
    by_hand::account accounts[40];
    list nodes;
    table words;
};

extern const hf_justdo_function make_lock_function;
struct make_lock_frame {
    by_hand::account* outer;
    by_hand::account* inner;
};
/// Makes a lock by a store, and takes it. The balance records whether the lock was held then: 1.
void make_lock(by_hand::account* outer, by_hand::account* inner) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<make_lock_frame*>(hf_justdo_enter(&make_lock_function, outer, &resumed));
    switch (resumed) {
    case 0:
        f = {outer, inner};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.outer->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1: hf_justdo_store(&f.inner->lock, 0, 8, 2); [[fallthrough]];
    case 2:
        hf_justdo_lock(&f.inner->lock, HF_JUSTDO_EXCLUSIVE, 3);
        point("make_lock", 3);
        [[fallthrough]];
    case 3:
        hf_justdo_store(&f.inner->balance, f.inner->lock.try_lock() ? 2 : 1, 8, 4);
        [[fallthrough]];
    case 4: hf_justdo_unlock(&f.inner->lock, HF_JUSTDO_EXCLUSIVE, 5); [[fallthrough]];
    case 5: hf_justdo_unlock(&f.outer->lock, HF_JUSTDO_EXCLUSIVE, 6);
    }
    hf_justdo_leave();
}
const hf_justdo_function make_lock_function{HF_ABI_VERSION,
                                            sizeof(make_lock_frame),
                                            4301,
                                            1,
                                            "make_lock",
                                            "justdo_test",
                                            6,
                                            0,
                                            [] { make_lock(nullptr, nullptr); },
                                            nullptr};
[[maybe_unused]] const bool registered = (hf_justdo_register(&make_lock_function), true);

thread_local std::jmp_buf stopped;
thread_local std::uint32_t points_left;

class Justdo : public ::testing::TestWithParam<mode> {
protected:
    ~Justdo() override { ::unlink(path_.c_str()); }
    open_options options() const {
        open_options o;
        o.layout = "justdo_test/1";
        o.create_bytes = 1_MiB;
        o.max_bytes = 16_MiB;
        o.mode = GetParam();
        o.engines = {justdo::engine({.open_waits = true})};
        return o;
    }
    result<pool> try_open() { return pool::open(path_, options()); }
    pool open() {
        auto p = try_open();
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), ::_exit(1);
        return std::move(*p);
    }
    /// Runs the section on a thread that dies at its point number 'points'. False: it ended before.
    static bool dies_at(std::uint32_t points, const std::function<void()>& section) {
        bool died = false;
        std::thread([&] {
            points_left = points;
            at_point = [](const char*, std::uint32_t) {
                if (points_left-- == 0) std::longjmp(stopped, 1);
            };
            if (setjmp(stopped) == 0) section();
            else died = true;
        }).join();
        return died;
    }
    const std::string path_ = "/dev/shm/hf_justdo_test." + std::to_string(::getpid());
};

std::uint64_t sum(const root* r) {
    std::uint64_t all = 0;
    for (const by_hand::account& a : r->accounts) all += a.balance;
    return all;
}

TEST_P(Justdo, ATransferStoppedAtAnyPointIsCompleted) {
    bool died = true;
    for (std::uint32_t points = 0; died; ++points) {
        pool p = open();
        auto* r = p.root<root>();
        r->accounts[0].balance = r->accounts[1].balance = 100;
        died = dies_at(points, [&] { transfer(&r->accounts[0], &r->accounts[1], 30); });
        EXPECT_EQ(died, points < 5);
        if (died) {
            pool::impl::abandon(std::move(p));
            p = open();
            r = p.root<root>();
            EXPECT_EQ(p.recovered().sections_pending, 1U);
            EXPECT_EQ(p.recovered().resumed, 1U);
        }
        EXPECT_EQ(r->accounts[0].balance, 70U) << points;
        EXPECT_EQ(r->accounts[1].balance, 130U) << points;
        transfer(&r->accounts[1], &r->accounts[0], 30); // the locks are free
    }
}

TEST_P(Justdo, AllocationAndFreeAreNeitherLostNorDoneTwice) {
    for (std::uint32_t points = 0; points < 8; ++points) {
        ::unlink(path_.c_str());
        pool p = open();
        auto* r = p.root<root>();
        push(&r->nodes, 1);
        const alloc_account before = hf::account(p);
        ASSERT_TRUE(dies_at(points, [&] { push(&r->nodes, 2), pop(&r->nodes); }));
        pool::impl::abandon(std::move(p));
        p = open();
        r = p.root<root>();
        if (points < 4) pop(&r->nodes); // the push alone was resumed
        EXPECT_EQ(r->nodes.count, 1U);
        ASSERT_NE(r->nodes.head, nullptr);
        EXPECT_EQ(r->nodes.head->value, 1U);
        EXPECT_EQ(hf::account(p).blocks, before.blocks + 1) << "the stopped thread's log";
    }
}

TEST_P(Justdo, FramesOfARecursionAndSnapshotsOfALoopResume) {
    std::uint64_t wanted = 0;
    for (std::uint64_t i = 0; i < 8; ++i) wanted += 3 * (i * i + 1);
    bool died = true;
    for (std::uint32_t points = 0; died; ++points) {
        pool p = open();
        auto* r = p.root<root>();
        for (std::uint64_t i = 0; i < 40; ++i) r->words.word[i] = i * i + 1;
        died = dies_at(points, [&] { total(&r->words, 3); });
        if (died) {
            pool::impl::abandon(std::move(p));
            p = open();
            EXPECT_EQ(p.recovered().resumed, 1U);
            r = p.root<root>();
        }
        EXPECT_EQ(r->words.sum, wanted) << points;
    }
}

TEST_P(Justdo, OverlappingCopiesAreThoseOfMemmove) {
    pool p = open();
    auto* r = p.root<root>();
    std::uint64_t model[40];
    for (std::uint64_t i = 0; i < 40; ++i) model[i] = r->words.word[i] = 1000 + i;
    shift(&r->words);
    std::memmove(model + 1, model, 39 * 8);
    std::memmove(model, model + 2, 38 * 8);
    std::memmove(model, model + 20, 8 * 8);
    std::memset(model + 30, 0x11, 3 * 8);
    EXPECT_EQ(std::memcmp(model, r->words.word, sizeof model), 0);
}

/// Sixteen sections and more, each waiting for the next one's account: each transfer holds its
/// first lock, and waits for one that another interrupted section holds.
TEST_P(Justdo, ManyInterruptedSectionsThatWaitForEachOtherAllEnd) {
    for (const unsigned sections : {16U, 33U}) {
        pool p = open();
        auto* r = p.root<root>();
        for (auto& a : r->accounts) a.balance = 1000;
        for (unsigned i = sections;
             i-- > 0;) // it stops with its first lock: the second is not free
            ASSERT_TRUE(dies_at(0, [&] { transfer(&r->accounts[i], &r->accounts[i + 1], i); }));
        pool::impl::abandon(std::move(p));
        p = open();
        r = p.root<root>();
        EXPECT_EQ(p.recovered().resumed, sections);
        EXPECT_EQ(sum(r), 40000U);
        for (unsigned i = 0; i <= sections; ++i)
            EXPECT_EQ(r->accounts[i].balance, 1000 - (i < sections ? i : 0) + (i > 0 ? i - 1 : 0));
    }
}

/// The store that made the lock may be lost with the step that took it, and is made again: before
/// the lock is taken.
TEST_P(Justdo, ALockThatWasJustMadeIsHeldWhereTheSectionGoesOn) {
    pool p = open();
    auto* r = p.root<root>();
    ASSERT_TRUE(dies_at(0, [&] { make_lock(&r->accounts[0], &r->accounts[1]); }));
    pool::impl::abandon(std::move(p));
    p = open();
    EXPECT_EQ(p.recovered().resumed, 1U);
    EXPECT_EQ(p.root<root>()->accounts[1].balance, 1U);
}

TEST_P(Justdo, ThreadsWorkAsIsUsual) {
    pool p = open();
    auto* r = p.root<root>();
    for (auto& a : r->accounts) a.balance = 1'000'000;
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 2000; ++i)
                transfer(&r->accounts[(i * 7 + t) % 5], &r->accounts[(i * 7 + t) % 5 + 1 + i % 3],
                         i % 50);
        });
    for (auto& t : threads) t.join();
    EXPECT_EQ(sum(r), 40'000'000U);
}

INSTANTIATE_TEST_SUITE_P(Modes, Justdo, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) {
                             return which.param == mode::process ? "process" : "pmem";
                         });

} // namespace
