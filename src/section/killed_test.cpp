// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a section killed at any of its steps is completed (clobber) or gone (undo), nothing leaks,
// and a kill while recovering is just another kill. Method: txfuncs instrumented by hand, so that
// this test needs no compiler plugin; a child process runs them and is killed before step k, for
// every k; the next child recovers, and may be killed in there as well; the last one checks.
#include <section/list_sections.hpp>

#include <holdfast/author/blocks.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/lock.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::list_sections;

struct setup {
    bool clobber;
    hf::mode mode;
    bool eadr;
};

result<pool> open_pool(const std::string& path, const setup& s) {
    open_options options;
    options.layout = "clobber_test/1";
    options.create_bytes = 1_MiB;
    options.mode = s.mode;
    options.expert.eadr = s.eadr;
    options.engines = {clobber::engine(), undo::engine()};
    return pool::open(path, options);
}

/// Runs 'body' in a child; true when it ended by itself with success, false when it was killed.
template <class Body> bool in_child(Body&& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        body();
        ::_exit(::testing::Test::HasFailure() ? 3 : 0);
    }
    int how = 0;
    EXPECT_EQ(::waitpid(child, &how, 0), child);
    if (WIFSIGNALED(how)) {
        EXPECT_EQ(WTERMSIG(how), SIGKILL);
        return false;
    }
    EXPECT_EQ(WEXITSTATUS(how), 0);
    return true;
}

class Sections : public ::testing::TestWithParam<setup> {
protected:
    void SetUp() override {
        path_ = "/dev/shm/hf_clobber_test." + std::to_string(::getpid());
        ::unlink(path_.c_str());
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    /// Pushes 1..5, then pops twice and pushes again, dying before step 'k'. True when it got
    /// through.
    bool run(int k) {
        return in_child([&] {
            auto p = open_pool(path_, GetParam());
            ASSERT_TRUE(p) << p.error().what();
            list* l = p->root<list>();
            steps_left = k;
            while (l->count < 5) push(GetParam().clobber, l, l->count + 1);
            pop(GetParam().clobber, l);
            pop(GetParam().clobber, l);
            push(GetParam().clobber, l, l->count + 1);
            steps_left = -1;
        });
    }
    /// Opens, dying before step 'k' of the recovery. True when recovery got through.
    bool recover(int k) {
        return in_child([&] {
            steps_left = k;
            auto p = open_pool(path_, GetParam());
            steps_left = -1;
            ASSERT_TRUE(p) << p.error().what();
            const char* wrong = fault(*p, p->root<list>()->count);
            EXPECT_EQ(wrong, nullptr) << wrong;
        });
    }
    std::string path_;
};

TEST_P(Sections, KilledBeforeAnyStepAreWholeAfterReopening) {
    int k = 0;
    for (;; ++k) {
        ::unlink(path_.c_str());
        const bool through = run(k);
        ASSERT_TRUE(recover(-1)) << "step " << k;
        ASSERT_TRUE(recover(-1)) << "reopened after recovery, step " << k;
        if (through || HasFailure()) break;
    }
    EXPECT_GT(k, 80);
}

TEST_P(Sections, KilledInRecoveryAreWholeAfterTheNext) {
    for (int k = 3; k < 60; k += 7)
        for (int j = 0; j < 12; ++j) {
            ::unlink(path_.c_str());
            run(k);
            if (!recover(j)) recover(j / 2);
            ASSERT_TRUE(recover(-1)) << "step " << k << ", recovery step " << j;
            ASSERT_TRUE(run(-1));
            ASSERT_TRUE(recover(-1)) << "used again, step " << k;
        }
}

INSTANTIATE_TEST_SUITE_P(Engines, Sections,
                         ::testing::Values(setup{true, hf::mode::process, false},
                                           setup{true, hf::mode::pmem, false},
                                           setup{true, hf::mode::pmem, true},
                                           setup{false, hf::mode::process, false},
                                           setup{false, hf::mode::pmem, false}),
                         [](const auto& info) {
                             const setup& s = info.param;
                             return std::string(s.clobber ? "clobber_" : "undo_") +
                                    (s.mode == hf::mode::process ? "process"
                                     : s.eadr                    ? "eadr"
                                                                 : "adr");
                         });

// --- contracts
// ------------------------------------------------------------------------------------

TEST(SectionContracts, StagedBlocksAreAllocatedOnlyWhenAdopted) {
    const std::string path = "/dev/shm/hf_stage_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    {
        auto p = open_pool(path, {true, hf::mode::pmem, false});
        ASSERT_TRUE(p) << p.error().what();
        list* l = p->root<list>();
        const auto before = account(*p).blocks;
        auto a = staged::in(*p, 1_MiB / 4);
        auto b = staged::in(*p, 100);
        ASSERT_TRUE(a && b);
        EXPECT_EQ(account(*p).blocks, before);
        hf_clobber_begin(&pop_desc, &l);
        hf_adopt(b->release());
        hf_clobber_commit();
        a->reset();
        EXPECT_EQ(account(*p).blocks, before + 1);
    }
    ::unlink(path.c_str());
}

TEST(SectionContracts, StagedCopiesAreExactWhereverTheyStart) {
    const std::string path = "/dev/shm/hf_copy_test." + std::to_string(::getpid());
    std::vector<char> source(5000);
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 7 + i / 251);
    for (hf::mode m : {hf::mode::process, hf::mode::pmem}) {
        ::unlink(path.c_str());
        auto p = open_pool(path, {true, m, false});
        ASSERT_TRUE(p) << p.error().what();
        auto block = staged::in(*p, 8192);
        ASSERT_TRUE(block);
        for (std::size_t at : {0, 1, 7, 40, 63, 64, 65})
            for (std::size_t bytes : {0, 1, 24, 63, 64, 128, 129, 4999}) {
                auto* to = block->as<char>();
                std::memset(to, '#', 8192);
                staged::copy(*p, to + at, source.data() + 1, bytes);
                staged::persist(*p, to, 1);
                ASSERT_EQ(std::memcmp(to + at, source.data() + 1, bytes), 0) << at << ' ' << bytes;
                ASSERT_EQ(to[at + bytes], '#');
                ASSERT_TRUE(at == 0 || to[at - 1] == '#');
            }
        block->reset();
    }
    ::unlink(path.c_str());
}

TEST(SectionContracts, AStagedBlockIsGivenBackWithItsOwnerUnlessASectionHasIt) {
    const std::string path = "/dev/shm/hf_owner_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    {
        auto p = open_pool(path, {true, hf::mode::pmem, false});
        ASSERT_TRUE(p) << p.error().what();
        for (int i = 0; i < 100; ++i) { // a thread has 16 at a time
            result<staged> block = staged::in(*p, 100);
            ASSERT_TRUE(block) << i << ": " << block.error().what();
            staged moved = std::move(*block), other = staged::near(p->root<list>(), 100);
            ASSERT_TRUE(moved && other && !*block) << i;
            other = std::move(moved); // gives its own one back
            ASSERT_NE(other.get(), nullptr);
        }
    }
    EXPECT_DEATH( // whose child opens the pool: it could not use its parent's
        {
            auto p = open_pool(path, {true, hf::mode::pmem, false});
            list* l = p->root<list>();
            const staged block = std::move(*staged::in(*p, 100));
            hf_clobber_begin(&pop_desc, &l);
            hf_adopt(block.get());
            hf_clobber_commit();
        },
        "call release\\(\\) when a section has adopted it");
    EXPECT_DEATH(
        {
            auto p = open_pool(path, {true, hf::mode::pmem, false});
            const staged block = std::move(*staged::in(*p, 100));
            staged::copy_words(block.get(), "1234567", 7);
        },
        "bytes % word_bytes == 0");
    ::unlink(path.c_str());
}

TEST(SectionContracts, TrimmedBlocksServeOtherSizes) {
    const std::string path = "/dev/shm/hf_trim_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    open_options options;
    options.layout = "trim/1";
    options.create_bytes = options.max_bytes = 256_KiB;
    auto p = pool::open(path, options);
    ASSERT_TRUE(p) << p.error().what();
    std::vector<void*> blocks;
    while (void* block = hf_alloc(48)) blocks.push_back(block);
    for (void* block : blocks) hf_free(block);
    return_spare_blocks(*p);
    EXPECT_NE(hf_alloc(32_KiB), nullptr);
    ::unlink(path.c_str());
}

TEST(SectionContracts, LogsLongerThanALaneContinueInTheHeap) {
    const std::string path = "/dev/shm/hf_long_test." + std::to_string(::getpid());
    for (bool clobber : {true, false}) {
        ::unlink(path.c_str());
        const setup s{clobber, hf::mode::pmem, false};
        in_child([&] {
            auto p = open_pool(path, s);
            ASSERT_TRUE(p) << p.error().what();
            auto* words = p->root<std::uint64_t[20000]>();
            for (std::uint64_t i = 0; i < 20000; ++i) (*words)[i] = i;
        });
        EXPECT_FALSE(in_child([&] {
            auto p = open_pool(path, s);
            ASSERT_TRUE(p) << p.error().what();
            auto* words = reinterpret_cast<std::uint64_t*>(p->root<std::uint64_t[20000]>());
            // Old values are logged as the undo engine would; the section is never finished.
            hf_undo_begin(&pop_desc, &words);
            for (std::uint64_t i = 0; i < 20000; ++i) {
                hf_undo_log(words + i, 8);
                words[i] = ~i;
            }
            ::kill(::getpid(), SIGKILL);
        }));
        in_child([&] {
            auto p = open_pool(path, s);
            ASSERT_TRUE(p) << p.error().what();
            EXPECT_EQ(p->recovered().rolled_back, 1U);
            auto* words = p->root<std::uint64_t[20000]>();
            for (std::uint64_t i = 0; i < 20000; ++i) ASSERT_EQ((*words)[i], i);
            EXPECT_EQ(account(*p).blocks, 1U);
        });
    }
    ::unlink(path.c_str());
}

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(SectionContracts, AChangedFunctionIsRefusedOnlyWhileItsSectionIsPending) {
    const std::string path = "/dev/shm/hf_changed_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    const setup s{true, hf::mode::process, false};
    static hf_txfunc changing{HF_ABI_VERSION,    sizeof(list*), 2002,       1,
                              "changing",        "here",        pop_schema, 1,
                              [](const void*) {}};
    hf_txfunc_register(&changing);
    EXPECT_FALSE(in_child([&] {
        auto p = open_pool(path, s);
        list* l = p->root<list>();
        hf_clobber_begin(&changing, &l);
        hf_clobber_log(&l->count, 8);
        l->count = 7;
        ::kill(::getpid(), SIGKILL);
    }));
    EXPECT_TRUE(in_child([&] {
        changing.version = 2;
        const std::string before = bytes_of(path);
        auto p = open_pool(path, s);
        ASSERT_FALSE(p);
        EXPECT_EQ(p.error().code(), errc::function_changed);
        EXPECT_TRUE(bytes_of(path) == before) << "the refusal changed the file";
    }));
    EXPECT_TRUE(in_child([&] {
        auto p = open_pool(path, s);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        EXPECT_EQ(p->root<list>()->count, 0U);
    }));
    EXPECT_TRUE(in_child([&] {
        changing.version = 2;
        EXPECT_TRUE(open_pool(path, s));
    }));
    ::unlink(path.c_str());
}

TEST(SectionContractsDeathTest, ArgumentsUpToOneKibibyteFitTheSmallestLane) {
    const std::string path = "/dev/shm/hf_args_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    static hf_txfunc wide{
        HF_ABI_VERSION, 1024, 3003, 1, "wide", "here", pop_schema, 1, [](const void* packed) {
            list* l = *static_cast<list* const*>(packed);
            hf_note_store(&l->sum, sizeof l->sum);
            l->sum = static_cast<const std::uint64_t*>(packed)[127];
        }};
    hf_txfunc_register(&wide);
    const setup s{true, hf::mode::pmem, false};
    EXPECT_FALSE(in_child([&] {
        auto p = open_pool(path, s);
        std::uint64_t args[128] = {reinterpret_cast<std::uint64_t>(p->root<list>())};
        args[127] = 77;
        hf_clobber_begin(&wide, args);
        ::kill(::getpid(), SIGKILL);
    }));
    {
        auto p = open_pool(path, s);
        ASSERT_TRUE(p) << p.error().what();
        EXPECT_EQ(p->recovered().re_executed, 1U);
        EXPECT_EQ(p->root<list>()->sum, 77U);
    }
    static hf_txfunc wider = wide;
    wider.args_bytes = 1032;
    EXPECT_DEATH( // whose child opens the pool: it could not use its parent's
        {
            auto p = open_pool(path, s);
            std::uint64_t args[129] = {reinterpret_cast<std::uint64_t>(p->root<list>())};
            hf_clobber_begin(&wider, args);
        },
        "wide .here. takes 1032 bytes of arguments");
    ::unlink(path.c_str());
}

TEST(SectionContractsDeathTest, VolatilePointersAreNamed) {
    const std::string path = "/dev/shm/hf_volatile_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    const setup of{true, hf::mode::process, false};
    list local{};
    const push_args args{&local, 1, nullptr};
    EXPECT_DEATH(
        {
            auto p = open_pool(path, of);
            hf_clobber_begin(&push_desc, &args);
        },
        "push .here.: argument 1 .*found volatile memory.*pass the value itself");
    ::unlink(path.c_str());
    EXPECT_DEATH(
        {
            auto p = open_pool(path, of);
            list* l = p->root<list>();
            hf_clobber_begin(&pop_desc, &l);
            hf_free(reinterpret_cast<char*>(l) + 8);
        },
        "frees .* no allocated block");
    ::unlink(path.c_str());
}

// The sum is logged by the section that follows, and not after a fence: then the bytes are durable.
TEST(FilledBytes, KeepTheirSumUntilTheyAreFenced) {
    const std::string path = "/dev/shm/hf_filled_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    auto p = open_pool(path, {true, hf::mode::pmem, false});
    ASSERT_TRUE(p) << p.error().what();
    list* l = p->root<list>();
    const std::uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    hf::staged staged = hf::staged::near(l, sizeof words);
    ASSERT_TRUE(staged);
    hf::staged::copy_words(staged.get(), words, sizeof words);
    const std::uint64_t& bytes = hf::persist::thread_counters().log_bytes;
    const auto begun = [&](auto begin, auto commit) {
        const std::uint64_t before = bytes;
        begin(&pop_desc, &l);
        const std::uint64_t logged = bytes - before;
        commit();
        return logged;
    };
    // A section that stores nothing fences nothing, but the next one does before it begins.
    const std::uint64_t first = begun(hf_clobber_begin, hf_clobber_commit);
    const std::uint64_t second = begun(hf_clobber_begin, hf_clobber_commit);
    const std::uint64_t by_undo = begun(hf_undo_begin, hf_undo_commit);
    // All name the block; only clobber logs the argument, and the 16 bytes of the sum.
    EXPECT_EQ(first, by_undo + sizeof l + 16);
    EXPECT_EQ(second, by_undo + sizeof l);
    staged.reset();
    ::unlink(path.c_str());
}

TEST(SectionContractsDeathTest, LocksAreTwoPhase) {
    const std::string path = "/dev/shm/hf_two_phase_test." + std::to_string(::getpid());
    ::unlink(path.c_str());
    hf::shared_mutex held{}, other{};
    held.lock();
    const auto in_section = [&](auto&& action) {
        ::unlink(path.c_str());
        auto p = open_pool(path, {true, hf::mode::process, false});
        list* l = p->root<list>();
        hf_clobber_begin(&pop_desc, &l);
        action();
        hf_clobber_commit();
    };
    EXPECT_DEATH(in_section([&] { held.unlock(); }),
                 "unlock in section pop .here.: locks are taken before");
    EXPECT_DEATH(in_section([&] { other.lock(); }),
                 "try_lock in section pop .here.: locks are taken before");
    EXPECT_DEATH(in_section([&] { other.lock_shared(); }), "try_lock_shared in section pop");
    in_section([] {});
    held.unlock();
    other.lock_shared();
    other.unlock_shared();
    ::unlink(path.c_str());
}

} // namespace
