// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results of floating-point arithmetic depend on modes of the thread: rounding, flushing of
// subnormal numbers, on x86-64 the x87 unit's precision. A section that is re-executed in a process
// with default modes computes the same as before; and opening leaves the opener's modes alone.
#include "support.hpp"
#include <persist/float_environment.hpp>

#include <holdfast/tx.hpp>

#include <cfenv>
#include <csignal>
#include <cstdlib>

namespace language_test {
namespace {

struct numbers {
    double divisor, quotient;
    double small, half;
    long double wide_divisor, wide_quotient;
    long done;
};

constexpr numbers start{.divisor = 3,
                        .quotient = 0,
                        .small = 3e-308,
                        .half = 0,
                        .wide_divisor = 3,
                        .wide_quotient = 0,
                        .done = 0};

[[gnu::noinline]] void divide(numbers* n) noexcept {
    n->quotient = 1 / n->divisor;
    n->half = n->small / 2;
    n->wide_quotient = 1 / n->wide_divisor;
}

int killed_at = 0; // 0: nowhere

/// hf::crash_point remembers for the whole process what was armed first.
HF_PURE long step(int number) noexcept {
    if (number == killed_at) ::kill(::getpid(), SIGKILL);
    return 1;
}

void compute(const hf::pool& pool, numbers* n) {
    hf::tx(pool, [n] {
        n->done += 1;
        n->done += step(1);
        divide(n);
        n->done += step(2);
    });
}

/// Puts the modes of a thread back.
struct modes {
    std::fenv_t before;
    modes() { std::fegetenv(&before); }
    ~modes() { std::fesetenv(&before); }
};

#if defined(__x86_64__)
void set_precision(unsigned control) {
    unsigned short word = 0;
    asm volatile("fnstcw %0" : "=m"(word));
    word = static_cast<unsigned short>((word & ~0x300u) | control);
    asm volatile("fldcw %0" : : "m"(word));
}
#endif

class floats : public pools {
protected:
    using setting = void (*)();

    /// The section's results if it is not interrupted.
    static numbers wanted(setting set) {
        const modes kept;
        numbers n = start;
        set();
        divide(&n);
        return n;
    }

    void kill_at(int place, setting set) {
        EXPECT_EXIT(
            {
                killed_at = place;
                hf::pool pool = open(first);
                auto* n = pool.root<numbers>();
                *n = start;
                set();
                compute(pool, n);
            },
            testing::KilledBySignal(SIGKILL), "");
    }

    void check(const numbers& right) {
        const auto mine = hf::persist::float_environment::current().bits();
        const int rounding = std::fegetround();
        hf::pool pool = open(first);
        const auto* n = pool.root<numbers>();
        EXPECT_EQ(n->done, clobber() ? 3 : 0);
        EXPECT_EQ(n->quotient, clobber() ? right.quotient : 0);
        EXPECT_EQ(n->half, clobber() ? right.half : 0);
        EXPECT_EQ(n->wide_quotient, clobber() ? right.wide_quotient : 0);
        EXPECT_EQ(hf::persist::float_environment::current().bits(), mine);
        EXPECT_EQ(std::fegetround(), rounding);
    }

    void recovers_what_it_computed(setting set) {
        const numbers right = wanted(set);
        for (int place : {1, 2}) {
            kill_at(place, set);
            EXPECT_EXIT( // a second failure, while the section is re-executed
                {
                    killed_at = 2;
                    hf::pool pool = open(first);
                    std::exit(clobber() ? 1 : 0);
                },
                [](int how) { return clobber() ? WIFSIGNALED(how) : WEXITSTATUS(how) == 0; }, "");
            check(right);
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
    const setting flush = [] { hf::persist::float_environment::flushing().apply(); };
    EXPECT_NE(wanted(flush).half, wanted([] {}).half);
    recovers_what_it_computed(flush);
}

#if defined(__x86_64__) // nowhere else does the thread choose it
TEST_F(floats, KeepsThePrecisionOfLongDouble) {
    const setting narrow = [] { set_precision(0x200); };
    EXPECT_NE(wanted(narrow).wide_quotient, wanted([] {}).wide_quotient);
    recovers_what_it_computed(narrow);
}
#endif

TEST_F(floats, RunsInTheModesOfAnOrdinaryProcess) {
    recovers_what_it_computed([] {});
}

} // namespace
} // namespace language_test
