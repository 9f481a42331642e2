// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of floating-point arithmetic depend on modes of the thread: rounding, flushing of
// subnormal numbers, the x87 unit's precision. A section that is re-executed, in a process that has
// set none of them, computes what it computed first; and opening leaves the opener's modes alone.
#include "support.hpp"

#include <holdfast/tx.hpp>

#include <cfenv>
#include <csignal>
#include <cstdlib>
#include <xmmintrin.h>

namespace language_test {
namespace {

struct numbers {
    double divisor, quotient;
    double small, half;
    long double wide_divisor, wide_quotient;
    long done;
};

constexpr numbers start{.divisor = 3, .quotient = 0, .small = 3e-308, .half = 0, .wide_divisor = 3,
                        .wide_quotient = 0, .done = 0};

[[gnu::noinline]] void divide(numbers* n) noexcept {
    n->quotient = 1 / n->divisor;
    n->half = n->small / 2;
    n->wide_quotient = 1 / n->wide_divisor;
}

void compute(const hf::pool& pool, numbers* n) {
    hf::tx(pool, [n] {
        n->done += 1;
        hf::crash_point("before computing");
        divide(n);
        hf::crash_point("computed");
        n->done += 1;
    });
}

/// Puts the modes of a thread back.
struct modes {
    std::fenv_t before;
    modes() { std::fegetenv(&before); }
    ~modes() { std::fesetenv(&before); }
};

void set_precision(unsigned control) {
    unsigned short word = 0;
    asm volatile("fnstcw %0" : "=m"(word));
    word = static_cast<unsigned short>((word & ~0x300u) | control);
    asm volatile("fldcw %0" : : "m"(word));
}

class floats : public pools {
protected:
    using setting = void (*)();

    /// What the section computes where it is not interrupted.
    static numbers wanted(setting set) {
        const modes kept;
        numbers n = start;
        set();
        divide(&n);
        return n;
    }

    void kill_at(const char* place, setting set) {
        EXPECT_EXIT(
            {
                ::setenv("HOLDFAST_CRASH_AT", place, 1);
                hf::pool pool = open(first);
                auto* n = pool.root<numbers>();
                *n = start;
                set();
                compute(pool, n);
            },
            testing::KilledBySignal(SIGKILL), "");
    }

    bool recovers(const numbers& right) {
        ::unsetenv("HOLDFAST_CRASH_AT");
        const unsigned mine = _mm_getcsr();
        const int rounding = std::fegetround();
        hf::pool pool = open(first);
        const auto* n = pool.root<numbers>();
        EXPECT_EQ(n->done, clobber() ? 2 : 0);
        EXPECT_EQ(n->quotient, clobber() ? right.quotient : 0);
        EXPECT_EQ(n->half, clobber() ? right.half : 0);
        EXPECT_EQ(n->wide_quotient, clobber() ? right.wide_quotient : 0);
        EXPECT_EQ(_mm_getcsr() & ~_MM_EXCEPT_MASK, mine & ~_MM_EXCEPT_MASK);
        EXPECT_EQ(std::fegetround(), rounding);
        return !HasFailure();
    }

    void recovers_what_it_computed(setting set) {
        const numbers right = wanted(set);
        for (const char* place : {"before computing", "computed"}) {
            kill_at(place, set);
            EXPECT_EXIT( // a second failure, while the section is re-executed
                {
                    ::setenv("HOLDFAST_CRASH_AT", "computed", 1);
                    hf::pool pool = open(first);
                    std::exit(clobber() ? 1 : 0);
                },
                [](int how) { return clobber() ? WIFSIGNALED(how) : WEXITSTATUS(how) == 0; }, "");
            // In a child: this process would remember that no crash point is armed.
            EXPECT_EXIT(std::exit(recovers(right) ? 0 : 1), testing::ExitedWithCode(0), "");
            ::unlink(first.c_str());
        }
    }
};

TEST_F(floats, RoundsAsItDid) {
    const setting up = [] { std::fesetround(FE_UPWARD); };
    EXPECT_NE(wanted(up).quotient, wanted([] {}).quotient);
    recovers_what_it_computed(up);
    recovers_what_it_computed([] { std::fesetround(FE_DOWNWARD); });
}

TEST_F(floats, FlushesSubnormalNumbersAsItDid) {
    const setting flush = [] { _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON); };
    EXPECT_NE(wanted(flush).half, wanted([] {}).half);
    recovers_what_it_computed(flush);
}

TEST_F(floats, KeepsThePrecisionOfLongDouble) {
    const setting narrow = [] { set_precision(0x200); };
    EXPECT_NE(wanted(narrow).wide_quotient, wanted([] {}).wide_quotient);
    recovers_what_it_computed(narrow);
}

TEST_F(floats, RunsInTheModesOfAnOrdinaryProcess) { recovers_what_it_computed([] {}); }

} // namespace
} // namespace language_test
