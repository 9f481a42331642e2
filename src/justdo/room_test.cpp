// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section holds as many locks, and nests as many calls, as it needs. Stopped anywhere on
// the way it resumes with all of them. If there is no room it ends with a message, and resumes once
// there is. Method: routines stopped by a jump out of their thread; the pool is abandoned as in a
// crash. The crash programs 'justdo/grip' and 'justdo/dive' fail the same at every event.
#include <justdo/inspect.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/justdo/routine.hpp>
#include <holdfast/justdo.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using justdo::object;
using justdo::by_hand::at_point;
using justdo::by_hand::plain_kind;
using justdo::by_hand::plain_lock;
using justdo::by_hand::point;

struct hall {
    hf::mutex* locks;
    plain_lock* plain;
    std::uint64_t ended, depth;
};

/// Takes locks, and releases what is more than 'window' of them, hand over hand.
struct holds {
    static constexpr const char* name = "holds";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        hall* in;
        std::uint64_t first, count, window;
    };
    struct locals {
        std::uint64_t i;
    };
    struct returns {};
    static void run(object& jd, const arguments& given, const locals& my, returns&) {
        hall& in = *given.in;
        hf::mutex* const locks = in.locks + given.first;
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(locks[0]));
        HF_JUSTDO_STEP(set(my.i, std::uint64_t{1}));
        while (my.i < given.count) {
            HF_JUSTDO_STEP(lock(locks[my.i]));
            point("holds", 1);
            if (my.i >= given.window) HF_JUSTDO_STEP(unlock(locks[my.i - given.window]));
            HF_JUSTDO_STEP(set(my.i, my.i + 1));
        }
        point("holds", 2);
        HF_JUSTDO_STEP(store(&in.ended, in.ended + 1));
        while (my.i > given.count - std::min(given.count, given.window)) {
            HF_JUSTDO_STEP(set(my.i, my.i - 1));
            HF_JUSTDO_STEP(unlock(locks[my.i]));
            point("holds", 3);
        }
        HF_JUSTDO_END;
    }
};

/// The same with locks that do not free themselves: each is intended, too. And with no lock, again
/// and again.
struct holds_plain {
    static constexpr const char* name = "holds_plain";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        hall* in;
        std::uint64_t count;
    };
    using locals = holds::locals;
    struct returns {};
    static void run(object& jd, const arguments& given, const locals& my, returns&) {
        hall& in = *given.in;
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(nullptr, HF_JUSTDO_NO_LOCK));
        while (my.i < given.count) {
            HF_JUSTDO_STEP(lock(&in.plain[my.i], plain_kind));
            HF_JUSTDO_STEP(lock(nullptr, HF_JUSTDO_NO_LOCK));
            point("holds_plain", 1);
            HF_JUSTDO_STEP(set(my.i, my.i + 1));
        }
        HF_JUSTDO_STEP(store(&in.ended, in.ended + 1));
        while (my.i > 0) {
            HF_JUSTDO_STEP(unlock(nullptr, HF_JUSTDO_NO_LOCK));
            HF_JUSTDO_STEP(set(my.i, my.i - 1));
            HF_JUSTDO_STEP(unlock(&in.plain[my.i], plain_kind));
            point("holds_plain", 2);
        }
        HF_JUSTDO_STEP(unlock(nullptr, HF_JUSTDO_NO_LOCK));
        HF_JUSTDO_END;
    }
};

/// Calls itself, and counts on the way back. A wide one has 1 KiB of locals.
template <bool Wide> struct descends {
    static constexpr const char* name = Wide ? "descends wide" : "descends";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        hall* in;
        std::uint64_t left;
    };
    struct locals {
        std::uint64_t words[Wide ? 128 : 1];
    };
    struct returns {};
    static void run(object& jd, const arguments& given, const locals& my, returns&) {
        HF_JUSTDO_BEGIN(jd);
        if (given.left != 0) {
            HF_JUSTDO_STEP(set(my.words[0], given.left));
            HF_JUSTDO_CALL(jd.call<descends<!Wide>>({given.in, given.left - 1}));
            point("descends", 1);
            HF_JUSTDO_STEP(store(&given.in->depth, given.in->depth + my.words[0]));
            // One that is short, where a long one may have had no room.
            HF_JUSTDO_CALL(jd.call<descends<false>>({given.in, 0}));
        }
        HF_JUSTDO_END;
    }
};
struct goes_down {
    static constexpr const char* name = "goes_down";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        hall* in;
        std::uint64_t depth;
    };
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.in->locks[0]));
        HF_JUSTDO_STEP(store(&given.in->depth, 0));
        HF_JUSTDO_CALL(jd.call<descends<true>>({given.in, given.depth}));
        HF_JUSTDO_STEP(unlock(given.in->locks[0]));
        HF_JUSTDO_END;
    }
};

/// Tries 80 locks, and says how many it has got.
extern const hf_justdo_function tries_function;
void tries(hall* in) {
    std::uint32_t resumed = 0;
    hf_justdo_enter(&tries_function, in, &resumed);
    std::uint64_t got = 0;
    while (got < 80 && hf_justdo_try_lock(&in->locks[got], HF_JUSTDO_EXCLUSIVE, 1) != 0) ++got;
    hf_justdo_store(&in->ended, got, 8, 1);
    while (got-- > 0) hf_justdo_unlock(&in->locks[got], HF_JUSTDO_EXCLUSIVE, 1);
    hf_justdo_leave();
}
const hf_justdo_function tries_function{HF_ABI_VERSION, 8, 4500, 1,       "tries",
                                        "room_test",    1, 0,    nullptr, nullptr};

constexpr std::uint64_t locks_max = 5000, plain_max = 200;
thread_local std::jmp_buf stopped;
thread_local std::uint64_t points_left;

class JustdoRoom : public ::testing::TestWithParam<mode> {
protected:
    JustdoRoom() { ::unlink(path_.c_str()); }
    ~JustdoRoom() override { ::unlink(path_.c_str()); }
    result<pool> try_open(bool salvage = false) {
        open_options o;
        o.layout = "room_test/1";
        o.create_bytes = create_bytes;
        o.max_bytes = max_bytes;
        o.mode = GetParam();
        o.engines = {justdo::engine({.open_waits = true})};
        o.salvage = salvage;
        return pool::open(path_, o);
    }
    pool open() {
        auto p = try_open();
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), ::_exit(1);
        auto* const in = p->root<hall>();
        if (in->locks == nullptr) {
            in->locks = static_cast<hf::mutex*>(hf_alloc(locks * sizeof(hf::mutex)));
            in->plain = static_cast<plain_lock*>(hf_alloc(plain_max * sizeof(plain_lock)));
            std::memset(static_cast<void*>(in->locks), 0, locks * sizeof(hf::mutex));
            std::memset(in->plain, 0, plain_max * sizeof(plain_lock));
        }
        return std::move(*p);
    }
    static object made(pool& p) { return *justdo::root::in(p)->new_object(); }
    /// Runs the routine on a thread that dies at its point number 'points'. False: it ended before.
    template <class R>
    static bool dies_at(pool& p, std::uint64_t points, const typename R::arguments& given) {
        bool died = false;
        std::thread([&] {
            points_left = points;
            at_point = [](const char*, std::uint32_t) {
                if (points_left-- == 0) std::longjmp(stopped, 1);
            };
            object jd = made(p);
            if (setjmp(stopped) == 0) jd.call<R>(given);
            else died = true;
        }).join();
        return died;
    }
    pool after_crash(pool p) {
        pool::impl::abandon(std::move(p));
        return open();
    }
    void expect_free(pool& p) {
        auto* const in = p.root<hall>();
        for (std::uint64_t i = 0; i < locks; ++i) {
            ASSERT_TRUE(in->locks[i].try_lock()) << i;
            in->locks[i].unlock();
        }
        for (std::uint64_t i = 0; i < plain_max; ++i) ASSERT_EQ(in->plain[i].taken, 0U) << i;
    }

    std::uint64_t create_bytes = 1_MiB, max_bytes = 16_MiB, locks = locks_max;
    const std::string path_ = "/dev/shm/hf_justdo_room_test." + std::to_string(::getpid());
};

TEST_P(JustdoRoom, ASectionHoldsAsManyLocksAsItTakes) {
    pool p = open();
    auto* const in = p.root<hall>();
    object jd = made(p);
    std::uint64_t ended = 0;
    for (const std::uint64_t count : {1U, 63U, 64U, 65U, 200U, 5000U, 65U, 1U}) {
        jd.call<holds>({in, 0, count, count});
        EXPECT_EQ(in->ended, ++ended) << count;
    }
    jd.call<holds>({in, 0, 5000, 100}); // hand over hand
    EXPECT_EQ(in->ended, ++ended);
    expect_free(p);
}

TEST_P(JustdoRoom, WhatALogHasGrownByIsThereForTheNextSectionAndTheNextOpen) {
    pool p = open();
    made(p).call<holds>({p.root<hall>(), 0, 64, 64});
    const std::uint64_t before = hf::account(p).blocks;
    made(p).call<holds>({p.root<hall>(), 0, 65, 65});
    const std::uint64_t grown = hf::account(p).blocks;
    EXPECT_EQ(grown, before + 1);
    made(p).call<holds>({p.root<hall>(), 0, 200, 200});
    EXPECT_EQ(hf::account(p).blocks, grown);
    { const pool closed = std::move(p); }
    p = open();
    made(p).call<holds>({p.root<hall>(), 0, 200, 200});
    EXPECT_EQ(hf::account(p).blocks, grown);
}

TEST_P(JustdoRoom, StoppedAnywhereASectionGoesOnWithAllOfItsLocks) {
    constexpr std::uint64_t count = 400;
    std::uint64_t ended = 0;
    pool p = open();
    for (const std::uint64_t points :
         {0U, 61U, 62U, 63U, 64U, 100U, 315U, 316U, 398U, 399U, 400U, 600U, 798U}) {
        ASSERT_TRUE(dies_at<holds>(p, points, {p.root<hall>(), 0, count, count})) << points;
        p = after_crash(std::move(p));
        EXPECT_EQ(p.recovered().resumed, 1U);
        EXPECT_EQ(p.root<hall>()->ended, ++ended) << points;
        expect_free(p);
        made(p).call<holds>({p.root<hall>(), 0, 3, 3});
        ++ended;
    }
    ASSERT_TRUE(dies_at<holds>(p, 250, {p.root<hall>(), 0, count, 70})); // hand over hand
    p = after_crash(std::move(p));
    EXPECT_EQ(p.root<hall>()->ended, ++ended);
    expect_free(p);
}

TEST_P(JustdoRoom, LocksThatDoNotFreeThemselvesAreResetHoweverMany) {
    std::uint64_t ended = 0;
    pool p = open();
    for (const std::uint64_t points : {10U, 31U, 32U, 90U, 199U, 200U, 300U, 399U}) {
        ASSERT_TRUE(dies_at<holds_plain>(p, points, {p.root<hall>(), plain_max})) << points;
        p = after_crash(std::move(p));
        EXPECT_EQ(p.recovered().resumed, 1U);
        EXPECT_EQ(p.root<hall>()->ended, ++ended);
        expect_free(p);
    }
}

/// Its log leads to the block, which is sound. Only when blocks are settled does it show that the
/// heap has others there.
TEST_P(JustdoRoom, SalvageGivesUpWhatALogHasGrownByAmongOtherBlocks) {
    pool p = open();
    ASSERT_TRUE(dies_at<holds>(p, 250, {p.root<hall>(), 0, 400, 400}));
    heap& blocks = p.internals().blocks.durable();
    block grown{0, 0};
    blocks.for_each([&](block b) {
        const auto* const head = static_cast<const justdo::more_head*>(p.internals().at(b.offset));
        if (head->magic == justdo::more_locks_magic) grown = b;
    });
    ASSERT_NE(grown.offset, 0U);
    const auto stored = [](const void*) {};
    blocks.retract(grown, stored);
    for (const std::uint64_t behind : {1024U, 2048U})
        blocks.publish({grown.offset + behind, 64}, stored);
    pool::impl::abandon(std::move(p));
    const auto refused = try_open();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::corrupt);
    EXPECT_NE(refused.error().what().find("a block that a thread's has grown by"),
              std::string::npos)
        << refused.error().what();
    {
        auto salvaged = try_open(true);
        ASSERT_TRUE(salvaged) << salvaged.error().what();
        EXPECT_EQ(salvaged->recovered().resumed, 0U);
        EXPECT_EQ(salvaged->root<hall>()->ended, 0U) << "the section stays half done";
    }
    p = open();
    expect_free(p);
    made(p).call<holds>({p.root<hall>(), 0, 400, 400}); // grows again
    EXPECT_EQ(p.root<hall>()->ended, 1U);
}

/// Each has many locks when it dies, and the first one goes on to those that the second one has.
TEST_P(JustdoRoom, SectionsThatWaitForEachOthersManyLocksAllEnd) {
    pool p = open();
    ASSERT_TRUE(dies_at<holds>(p, 98, {p.root<hall>(), 0, 200, 200}));
    ASSERT_TRUE(dies_at<holds>(p, 78, {p.root<hall>(), 100, 90, 90}));
    ASSERT_TRUE(dies_at<holds_plain>(p, 50, {p.root<hall>(), 100}));
    p = after_crash(std::move(p));
    EXPECT_EQ(p.recovered().resumed, 3U);
    EXPECT_EQ(p.root<hall>()->ended, 3U);
    expect_free(p);
}

/// In a small pool a thread's own block has room for few frames.
TEST_P(JustdoRoom, CallsNestAsDeepAsTheyDoAndAreResumedAtAnyDepth) {
    create_bytes = max_bytes = 512_KiB, locks = 1;
    constexpr std::uint64_t depth = 200, sum = depth * (depth + 1) / 2;
    pool p = open();
    made(p).call<goes_down>({p.root<hall>(), depth});
    EXPECT_EQ(p.root<hall>()->depth, sum);
    const std::uint64_t blocks = hf::account(p).blocks;
    for (const std::uint64_t points : {0U, 1U, 2U, 50U, 99U, 100U, 198U, 199U}) {
        ASSERT_TRUE(dies_at<goes_down>(p, points, {p.root<hall>(), depth})) << points;
        p = after_crash(std::move(p));
        EXPECT_EQ(p.recovered().resumed, 1U);
        EXPECT_EQ(p.root<hall>()->depth, sum) << points;
        made(p).call<goes_down>({p.root<hall>(), 3});
        EXPECT_EQ(p.root<hall>()->depth, 6U);
    }
    EXPECT_LE(hf::account(p).blocks, 2 * blocks); // of two threads at most
}

/// Takes every block of every size, also those that the thread has at hand. Requires: one pool is
/// open.
void fill() {
    for (std::uint64_t bytes = 4096; bytes != 0; bytes -= 16)
        while (hf_alloc(bytes) != nullptr) {}
}

TEST_P(JustdoRoom, InAFullPoolThereIsRoomForALockLog) {
    locks = 200;
    max_bytes = 1_MiB;
    pool p = open();
    made(p); // the thread has its block
    fill();
    made(p).call<holds>({p.root<hall>(), 0, 200, 200});
    EXPECT_EQ(p.root<hall>()->ended, 1U);
}

/// A pool of less than 1 MiB keeps nothing for logs.
TEST_P(JustdoRoom, WithoutAnyRoomASectionSaysSoAndGoesOnInAPoolThatMayGrow) {
    locks = 200;
    create_bytes = max_bytes = 128_KiB;
    const auto in_child = [&] {
        pool p = open();
        object jd = made(p);
        fill();
        jd.call<holds>({p.root<hall>(), 0, 200, 200});
    };
    EXPECT_DEATH(in_child(), "pool_full.*holds .*takes lock .*number 65 of its section.*goes on "
                             "when the pool is opened and has room.*holdfast repair --roll-back "
                             "--force /dev/shm");
    const auto refused = try_open();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::pool_full);
    for (const char* word :
         {"has room", "holdfast repair --roll-back --force /dev/shm", "half done", "read_only"})
        EXPECT_NE(refused.error().what().find(word), std::string::npos) << refused.error().what();
    max_bytes = 1_MiB;
    pool p = open();
    EXPECT_EQ(p.recovered().resumed, 1U);
    EXPECT_EQ(p.root<hall>()->ended, 1U);
    expect_free(p);
}

/// A try of a lock fails where the log has no room, and the section goes on without it.
TEST_P(JustdoRoom, WithoutAnyRoomATryIsInVainAndTheSectionEnds) {
    locks = 80;
    create_bytes = max_bytes = 128_KiB;
    pool p = open();
    made(p);
    fill();
    tries(p.root<hall>());
    EXPECT_EQ(p.root<hall>()->ended, 64U);
    expect_free(p);
}

INSTANTIATE_TEST_SUITE_P(Modes, JustdoRoom, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) {
                             return which.param == mode::process ? "process" : "pmem";
                         });

} // namespace
