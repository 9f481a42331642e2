// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section that the compiler makes to resume holds as many locks, and nests as many calls,
// as it needs, also when it is killed on the way. Method: engines justdo and ido; a child that is
// killed when it holds all of its locks, or is as deep as it goes.
#include "support.hpp"

#include <holdfast/author/crash.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <csignal>
#include <cstdlib>
#include <sys/wait.h>

namespace language_test {
namespace {

constexpr long locks_max = 200;
struct hall {
    hf::mutex locks[locks_max];
    long ended;
    long sum;
};

template <bool Dies> HF_TXFUNC void hold(hall* in, long count) noexcept {
    for (long i = 0; i < count; ++i) in->locks[i].lock();
    in->ended += 1;
    if (Dies) hf::crash_point("here");
    in->ended += 1;
    for (long i = count; i-- > 0;) in->locks[i].unlock();
}

template <bool Dies> __attribute__((noinline)) long down(hall* in, long depth) noexcept {
    if (depth == 0) {
        if (Dies) hf::crash_point("here");
        return 0;
    }
    const long below = down<Dies>(in, depth - 1);
    in->sum += depth;
    return below + depth;
}
template <bool Dies> HF_TXFUNC void go_down(hall* in, long depth) noexcept {
    in->sum = 0;
    in->sum -= down<Dies>(in, depth);
    in->sum += 7;
}

/// A process reads the variable once: what may read it runs in a child of its own.
class many_locks : public pools {
protected:
    template <class Work> int in_child(Work work) {
        const pid_t child = ::fork();
        if (child == 0) {
            work();
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        return how;
    }
    /// Kills a child in the section; another process resumes it, and looks.
    template <class Section, class Look> void die_in(Section section, Look look) {
        const int died = in_child([&] {
            ::setenv("HOLDFAST_CRASH_AT", "here", 1);
            hf::pool p = open(first, 1 << 20);
            section(p.root<hall>());
        });
        ASSERT_TRUE(WIFSIGNALED(died) && WTERMSIG(died) == SIGKILL) << died;
        EXPECT_EQ(in_child([&] {
                      hf::pool p = open(first, 1 << 20);
                      EXPECT_EQ(p.recovered().resumed, 1U);
                      hf::justdo::wait(p);
                      look(*p.root<hall>());
                  }),
                  0);
    }
};

TEST_F(many_locks, ASectionHoldsAsManyAsItTakes) {
    hf::pool p = open(first, 1 << 20);
    hall* const in = p.root<hall>();
    long ended = 0;
    for (const long count : {1L, 63L, 64L, 65L, locks_max, 2L}) {
        hold<false>(in, count);
        EXPECT_EQ(in->ended, ended += 2) << count;
    }
}

TEST_F(many_locks, KilledWithAllOfThemItGoesOn) {
    long ended = 0;
    for (const long count : {1L, 63L, 64L, 65L, locks_max}) {
        ended += 2;
        die_in([=](hall* in) { hold<true>(in, count); },
               [=](hall& in) {
                   EXPECT_EQ(in.ended, ended) << count;
                   for (hf::mutex& lock : in.locks) {
                       EXPECT_TRUE(lock.try_lock());
                       lock.unlock();
                   }
               });
    }
}

TEST_F(many_locks, CallsNestAsDeepAsTheyDo) {
    {
        hf::pool p = open(first, 1 << 20);
        go_down<false>(p.root<hall>(), 300);
        EXPECT_EQ(p.root<hall>()->sum, 7);
    }
    die_in([](hall* in) { go_down<true>(in, 300); }, [](const hall& in) { EXPECT_EQ(in.sum, 7); });
}

} // namespace
} // namespace language_test
