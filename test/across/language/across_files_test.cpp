// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what a section calls in another file, without link-time optimisation, is part of it: it
// happens with the section or not at all, and both see each other's stores. Method: sections that
// commit, that processes die in, and that exceptions leave, in every mode.
#include "across_files.hpp"
#include "support.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace language_test {

long count_down_here(purse* of, long from) {
    of->coins += 1;
    return count_down(of, from);
}

namespace {

// [moves]
HF_TXFUNC long move(purses* p, long coins, bool dies = false) {
    p->one.coins += 1;
    take(&p->one, coins, dies); // joins: its stores happen with these, or not at all
    p->other.coins += coins;
    return worth(&p->one);
}
// [/moves]

HF_TXFUNC void move_half(purses* p) {
    long first = 0, second = 0;
    split(p->one.coins, &first, &second); // to locals
    split(second, &p->one.coins, &p->one.changes);
    p->other.coins = first + p->one.coins * 10;
}

HF_TXFUNC long goes_to_and_fro(purses* p, long times) { return count_down(&p->one, times); }

HF_TXFUNC void keeps(purses* p, long coins) { keeper<long>::keep(&p->one.coins, coins); }

#if defined(TAKES_BACK)
HF_TXFUNC void is_refused(purses* p) {
    p->other.coins = -1;
    refuse(&p->one);
}
#endif

class across_files : public pools, public testing::WithParamInterface<hf::mode> {
protected:
    hf::pool open_in_mode() {
        hf::open_options o;
        o.layout = "across files/1";
        o.create_bytes = o.max_bytes = 256 << 10;
        o.mode = GetParam();
        o.engines = hf::engines_of_build();
        auto opened = hf::pool::open(first, o);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::exit(1);
        return std::move(*opened);
    }
    /// In a process of its own.
    void move_and_die() {
        ::setenv("HOLDFAST_CRASH_AT", "taken", 1);
        hf::pool p = open_in_mode();
        (void)move(p.root<purses>(), 7, true);
    }
};

TEST_P(across_files, SectionsSeeEachOthersStores) {
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    EXPECT_EQ(move(all, 7), (1 - 7) * 100 + 1);
    EXPECT_EQ(all->one.coins, 1 - 7);
    EXPECT_EQ(all->other.coins, 7);
    EXPECT_EQ(*all->one.newest, 7);
    EXPECT_EQ(move(all, 2), (2 - 9) * 100 + 2);
    EXPECT_EQ(*all->one.newest, 2);
}

TEST_P(across_files, FunctionIsSectionByItself) {
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    take(&all->one, 3);
    EXPECT_EQ(all->one.coins, -3);
    EXPECT_EQ(worth(&all->one), -299); // a plain function outside
}

TEST_P(across_files, LocalsAndThePoolAreWrittenByTheSameFunction) {
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    take(&all->one, -21);
    move_half(all);
    EXPECT_EQ(all->one.coins, 5);
    EXPECT_EQ(all->one.changes, 6);
    EXPECT_EQ(all->other.coins, 60);
}

TEST_P(across_files, RecursionGoesThroughBothFiles) {
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    EXPECT_EQ(goes_to_and_fro(all, 5), 6);
    EXPECT_EQ(all->one.coins, 5);
}

TEST_P(across_files, TemplateOfAnotherFileIsPartOfTheSection) {
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    keeps(all, 4);
    keeps(all, 5);
    EXPECT_EQ(all->one.coins, 9);
}

TEST_P(across_files, SectionThatProcessDiesInHasNotHappened) {
    {
        hf::pool p = open_in_mode();
        (void)move(p.root<purses>(), 100);
    }
    for (int kill = 0; kill < 3; ++kill)
        EXPECT_EXIT(move_and_die(), testing::KilledBySignal(SIGKILL), "");
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    EXPECT_EQ(all->one.coins, -99);
    EXPECT_EQ(all->one.changes, 1);
    EXPECT_EQ(all->other.coins, 100);
    EXPECT_EQ(*all->one.newest, 100);
    EXPECT_EQ(move(all, 1), -9900 + 1 * 100 - 100 + 2);
}

#if defined(TAKES_BACK)
TEST_P(across_files, SectionLeftThroughAnotherFileHasNotHappened) {
    hf::pool p = open_in_mode();
    auto* const all = p.root<purses>();
    EXPECT_THROW(is_refused(all), std::runtime_error);
    EXPECT_EQ(all->one.coins, 0);
    EXPECT_EQ(all->other.coins, 0);
    EXPECT_EQ(move(all, 7), (1 - 7) * 100 + 1);
}
#endif

INSTANTIATE_TEST_SUITE_P(modes, across_files,
                         testing::Values(hf::mode::process, hf::mode::pmem, hf::mode::power),
                         [](const auto& of) { return std::string(hf::name(of.param)); });

} // namespace
} // namespace language_test
