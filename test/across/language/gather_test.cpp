// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section reads through a vector of absolute addresses (AVX2's gather, with null as its base),
// and writes under a mask. It must read its own stores. After a kill between its stores the pool
// must hold the state of an uninterrupted run, or the old state. A child process runs each section.
// A processor without AVX2 skips.
#include "support.hpp"

#include <holdfast/txfunc.hpp>

#include <algorithm>
#include <cstdlib>
#include <sys/wait.h>

namespace language_test {
namespace {

struct row {
    long long a[4];
    long long masked[4];
};

using words = long long __attribute__((vector_size(32)));

HF_TXFUNC __attribute__((target("avx2"))) void gathers(row* r) noexcept {
    const long long from = reinterpret_cast<long long>(r->a);
    const words at = {from, from + 8, from + 16, from + 24}, all = {-1, -1, -1, -1};
    r->a[0] = 5;
    const words found = __builtin_ia32_gatherq_q256(all, nullptr, at, all, 1);
    r->a[1] = found[0] + 1;
    __builtin_ia32_maskstoreq256(reinterpret_cast<words*>(r->masked), words{-1, 0, -1, 0}, found);
    hf::crash_point("gathered");
    r->a[2] = found[1] + 100;
    const words again = __builtin_ia32_maskloadq256(reinterpret_cast<const words*>(r->masked), all);
    r->a[3] = again[2] + r->masked[0];
}

constexpr row before{{10, 20, 30, 40}, {1, 2, 3, 4}};
constexpr row after{{5, 6, 120, 35}, {5, 2, 30, 4}};

bool same(const row& x, const row& y) {
    return std::equal(x.a, x.a + 4, y.a) && std::equal(x.masked, x.masked + 4, y.masked);
}

HF_TXFUNC void begins(row* r) noexcept { *r = before; }

class gather : public pools {};

/// Runs the section in a child, which HOLDFAST_CRASH_AT may kill; returns how it ended.
int run(const std::string& path, const char* crash_at) {
    pid_t child = ::fork();
    if (child == 0) {
        crash_at ? ::setenv("HOLDFAST_CRASH_AT", crash_at, 1) : ::unsetenv("HOLDFAST_CRASH_AT");
        hf::pool pool = open(path);
        gathers(pool.root<row>());
        std::_Exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

row found(const std::string& path) {
    hf::pool pool = open(path);
    return *pool.root<row>();
}

TEST_F(gather, FindsWhatTheSectionStored) {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
    {
        hf::pool pool = open(first);
        begins(pool.root<row>());
    }
    EXPECT_EQ(run(first, nullptr), 0);
    EXPECT_TRUE(same(found(first), after));
}

TEST_F(gather, IsWholeOrGoneAfterAKill) {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
    {
        hf::pool pool = open(first);
        begins(pool.root<row>());
    }
    EXPECT_TRUE(WIFSIGNALED(run(first, "gathered")));
    const row left = found(first);
    EXPECT_TRUE(same(left, after) || same(left, before))
        << left.a[0] << ' ' << left.a[1] << ' ' << left.a[2];
    EXPECT_EQ(run(first, nullptr), 0);
    EXPECT_EQ(found(first).a[1], 6);
}

} // namespace
} // namespace language_test
