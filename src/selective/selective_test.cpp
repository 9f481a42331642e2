// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: lazily stored data is computed again before anybody sees it, or the pool is refused; and no
// end of a rebuild loses the pool. Method: sections instrumented by hand; a child is killed, or its
// pool abandoned, at a stated place, and the results of the next open are compared.
#include <open/pool_impl.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/migration.hpp>
#include <holdfast/selective.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>
#include <selective/protocol.hpp>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

struct root {
    std::uint64_t count, values[64], total;
};
const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc function{HF_ABI_VERSION, 8, 4001, 1, "add", "here", schema, 1, nullptr};

/// Adds a value; the total is lazy.
void add(root* r, std::uint64_t value, bool dies = false) {
    hf_selective_begin(&function, &r);
    hf_log_free(&r->values[r->count], 8);
    r->values[r->count] = value;
    hf_lazy(&r->total, 8);
    r->total += value;
    hf_selective_log(&r->count, 8);
    r->count += 1;
    if (dies) ::kill(::getpid(), SIGKILL);
    hf_selective_commit();
}

void find_total(pool& of) {
    auto* r = of.root<root>();
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < r->count; ++i) total += r->values[i];
    hf_selective_begin(&function, &r);
    hf_lazy(&r->total, 8);
    r->total = total;
    hf_selective_commit();
}

class Selective : public ::testing::Test {
protected:
    const std::string path_ = "/dev/shm/holdfast-selective." + std::to_string(getpid());
    open_options options_;
    int rebuilt_ = 0;

    void SetUp() override {
        options_.layout = "selective/1";
        options_.create_bytes = options_.max_bytes = 64_KiB;
        options_.engines = with([this](pool& of) {
            ++rebuilt_;
            find_total(of);
        });
    }
    void TearDown() override { std::remove(path_.c_str()); }

    static std::vector<engine_ptr> with(std::function<void(pool&)> rebuild) {
        return {selective::engine({.rebuild = std::move(rebuild)}), undo::engine()};
    }
    /// A process that adds so many values and then dies in the midst of one more.
    void leave_pending(int values) const {
        const pid_t child = ::fork();
        if (child == 0) {
            auto opened = pool::open(path_, options_);
            if (!opened) ::_exit(1);
            for (int i = 0; i < values; ++i) add(opened->root<root>(), 10);
            add(opened->root<root>(), 1000, true);
            ::_exit(2);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    std::string bytes() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
};

TEST_F(Selective, AKillTakesNoSectionOfUndoThatHasReturnedInNoMode) {
    options_.create_bytes = options_.max_bytes = 1_MiB;
    options_.engines = {selective::engine(),
                        undo::engine({.durable = durability::by_next_section})};
    for (const mode in : {mode::process, mode::pmem, mode::power}) {
        std::remove(path_.c_str());
        options_.mode = in;
        const pid_t child = ::fork();
        if (child == 0) {
            auto opened = pool::open(path_, options_);
            if (!opened) ::_exit(1);
            root* r = opened->root<root>();
            for (int i = 0; i < 3; ++i) {
                hf_undo_begin(&function, &r);
                hf_undo_log(&r->count, 8);
                r->count += 1;
                hf_undo_commit();
            }
            ::kill(::getpid(), SIGKILL);
        }
        int ended = 0;
        ::waitpid(child, &ended, 0);
        EXPECT_TRUE(WIFSIGNALED(ended));
        auto opened = pool::open(path_, options_);
        ASSERT_TRUE(opened) << opened.error().what();
        EXPECT_EQ(opened->root<root>()->count, 3) << static_cast<int>(in);
    }
}

TEST_F(Selective, InModePowerEachSectionIsOnTheDiskWhenItReturns) {
    options_.create_bytes = options_.max_bytes = 1_MiB;
    options_.mode = mode::power;
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    for (std::uint64_t i = 0; i < 3; ++i) {
        const std::uint64_t before = opened->logged().waits;
        add(opened->root<root>(), i);
        EXPECT_GT(opened->logged().waits, before);
    }
}

TEST_F(Selective, WhatASectionThatIsRolledBackStoredLazilyIsRebuilt) {
    leave_pending(3);
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(rebuilt_, 1);
    EXPECT_EQ(opened->recovered().rolled_back, 1U);
    EXPECT_EQ(opened->root<root>()->count, 3U);
    EXPECT_EQ(opened->root<root>()->total, 30U);
}

TEST_F(Selective, ACleanCloseLeavesNothingToRebuild) {
    {
        auto opened = pool::open(path_, options_);
        ASSERT_TRUE(opened);
        add(opened->root<root>(), 7);
    }
    options_.engines = with(nullptr); // not asked for
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(rebuilt_, 0);
    EXPECT_EQ(opened->root<root>()->total, 7U);
}

TEST_F(Selective, APoolThatNobodyCanRebuildIsRefusedAndStaysAsItIs) {
    leave_pending(2);
    const std::string before = bytes();
    open_options without = options_;
    without.engines = with(nullptr);
    const auto refused = pool::open(path_, without);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::missing_engine);
    EXPECT_NE(refused.error().what().find("expected selective::options::rebuild"),
              std::string::npos);
    open_options look = options_;
    look.read_only = true;
    EXPECT_EQ(pool::open(path_, look).error().code(), errc::missing_engine);
    EXPECT_EQ(bytes(), before);
    {
        without.salvage = true;
        auto salvaged = pool::open(path_, without);
        ASSERT_TRUE(salvaged) << salvaged.error().what();
        EXPECT_NE(salvaged->warnings().back().find("compute again"), std::string::npos);
        EXPECT_EQ(salvaged->root<root>()->count, 2U);
    }
    without.salvage = false; // given up, it is a pool like any other
    EXPECT_TRUE(pool::open(path_, without));
}

TEST_F(Selective, WithoutARebuildLazyStoresRollBack) {
    options_.engines = with(nullptr);
    leave_pending(2);
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(opened->root<root>()->total, 20U);
}

TEST_F(Selective, ARebuildThatIsCutShortIsRunAgain) {
    leave_pending(4);
    open_options killed = options_;
    killed.engines = with([](pool& of) {
        of.root<root>()->total = 77; // of no value
        ::kill(::getpid(), SIGKILL);
    });
    const pid_t child = ::fork();
    if (child == 0) {
        (void)pool::open(path_, killed);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(rebuilt_, 1);
    EXPECT_EQ(opened->root<root>()->total, 40U);
}

TEST_F(Selective, WhatARebuildThrowsReachesTheCallerAndThePoolOpensLater) {
    leave_pending(1);
    open_options throwing = options_;
    throwing.engines = with([](pool&) { throw std::runtime_error("no"); });
    EXPECT_THROW((void)pool::open(path_, throwing), std::runtime_error);
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(opened->root<root>()->total, 10U);
}

/// Sections that store lazily alone flush their marks, and no line of theirs before many wait.
TEST_F(Selective, LazyLinesWaitForACommitThatFindsMany) {
    options_.mode = mode::pmem;
    options_.create_bytes = options_.max_bytes = 1024_KiB;
    struct lines {
        struct {
            std::uint64_t word, rest[7];
        } line[4 * selective::lazy_lines_max];
    };
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    auto* all = opened->root<lines>();
    const auto flushes_of = [&](std::size_t first, std::size_t count) {
        const std::uint64_t before = persist::thread_counters().flushes;
        hf_selective_begin(&function, &all);
        for (std::size_t i = first; i < first + count; ++i) {
            hf_lazy(&all->line[i].word, 8);
            all->line[i].word = i;
        }
        hf_selective_commit();
        return persist::thread_counters().flushes - before;
    };
    flushes_of(0, 1); // starts the thread's lane
    const std::uint64_t mark = flushes_of(0, 1);
    EXPECT_EQ(flushes_of(1, selective::lazy_lines_max - 1), mark);
    EXPECT_GE(flushes_of(selective::lazy_lines_max, 1), mark + selective::lazy_lines_max);
    EXPECT_EQ(flushes_of(0, 1), mark);
}

TEST_F(Selective, WhatAMigrationLeftIsRebuiltAfterTriesThatFail) {
    ASSERT_TRUE(pool::open(path_, options_));
    options_.layout = "selective/2";
    enum { dies, fails, throws, returns } how = dies;
    options_.migrate = [&](migration& m) -> status {
        add(m.in().root<root>(), 10, how == dies);
        if (how == fails) return {errc::io_error, "not today"};
        if (how == throws) throw std::runtime_error("nor today");
        return {};
    };
    const pid_t child = ::fork();
    if (child == 0) {
        (void)pool::open(path_, options_);
        ::_exit(1);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    ASSERT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    how = fails;
    EXPECT_FALSE(pool::open(path_, options_));
    how = throws;
    EXPECT_THROW((void)pool::open(path_, options_), std::runtime_error);
    EXPECT_EQ(rebuilt_, 0);
    how = returns;
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(rebuilt_, 1);
    EXPECT_EQ(opened->root<root>()->total, 30);
}

} // namespace
