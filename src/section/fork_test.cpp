// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a child of fork() cannot change its parent's pool, by no way; it learns why, and can open
// pools of its own, the parent's too once that has closed it. Method: a child for each way, and the
// file's bytes before and after it.
#include <open/pool_impl.hpp>
#include <pool/test_support.hpp>
#include <section/section.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/staged.hpp>
#include <holdfast/pool.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <spawn.h>
#include <thread>

namespace {

using namespace hf;
using hf::test::in_child;

class Fork : public hf::test::PoolPath<hf::open_options> {
protected:
    void SetUp() override {
        PoolPath::SetUp();
        ::signal(SIGSEGV, SIG_DFL); // whatever a sanitizer would make of it
    }
    pool open_at(const std::string& where) {
        auto opened = pool::open(where, options);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::abort();
        return std::move(*opened);
    }
    std::string other() const { return directory + "/other.hf"; }

    static int end_of(pid_t child) {
        int how = 0;
        ::waitpid(child, &how, 0);
        return how;
    }
    /// Which signal 'body' dies of in a child, and that the file stays as it is meanwhile.
    int dies_of(const std::function<void()>& body) {
        const std::string before = hf::test::contents(path);
        const pid_t child = ::fork();
        if (child == 0) {
            (void)!::freopen((directory + "/said").c_str(), "w", stderr);
            ::setvbuf(stderr, nullptr, _IONBF, 0);
            body();
            ::_exit(0);
        }
        const int how = end_of(child);
        EXPECT_EQ(hf::test::contents(path), before);
        if (!WIFSIGNALED(how)) return 0;
        const std::string said = hf::test::contents(directory + "/said");
        EXPECT_NE(said.find("child of the process that has opened the pool"), said.npos) << said;
        return WTERMSIG(how);
    }
};

TEST_F(Fork, StoresAndLoadsDieWithTheReason) {
    pool p = open_at(path);
    auto* word = p.root<std::uint64_t>();
    *word = 7;
    EXPECT_EQ(dies_of([&] { *word = 8; }), SIGSEGV);
    EXPECT_EQ(dies_of([&] { ::_exit(static_cast<int>(*word)); }), SIGSEGV);
    EXPECT_EQ(*word, 7U);
}

TEST_F(Fork, CallsOfTheLibraryAreRefused) {
    pool p = open_at(path);
    auto* word = p.root<std::uint64_t>();
    void* block = hf_alloc(32);
    EXPECT_TRUE(in_child([&] {
        const auto root = p.find_root<std::uint64_t>();
        const auto staged = staged::in(p, 16);
        return p.root<std::uint64_t>() == nullptr && !root && root.error().code() == errc::in_use &&
               !staged && staged.error().code() == errc::in_use;
    }));
    const std::function<void()> calls[] = {
        [] { (void)hf_alloc(16); },
        [&] { hf_free(block); },
        [&] { return_spare_blocks(p); },
        [&] { staged::copy_words(word, word, 8); },
    };
    for (const auto& call : calls) EXPECT_EQ(dies_of(call), SIGABRT) << &call - calls;
    hf_free(block);
}

TEST_F(Fork, AStagedBlockIsTheParentsWhateverBecomesOfItsOwnerInTheChild) {
    pool p = open_at(path);
    std::optional<staged> owner = std::move(*staged::in(p, 64));
    void* const block = owner->get();
    EXPECT_EQ(dies_of([&] { owner->reset(); }), 0);
    EXPECT_EQ(dies_of([&] { owner.reset(); }), 0);
    EXPECT_EQ(dies_of([&] { *owner = staged(); }), 0);
    std::memset(block, 1, 64);
    owner.reset();
    EXPECT_EQ(staged::in(p, 64)->get(), block) << "the parent has not given it back";
}

TEST_F(Fork, ClosingLeavesTheFileAloneHoweverTheChildEnds) {
    std::optional<pool> p = open_at(path);
    *p->root<std::uint64_t>() = 1;
    EXPECT_EQ(dies_of([&] { p.reset(); }), 0);
    EXPECT_EQ(dies_of([&] { pool moved = std::move(*p); }), 0);
    EXPECT_EQ(dies_of([&] {
                  pool mine = open_at(other());
                  *p = std::move(mine);
              }),
              0);
    static std::optional<pool> at_exit; // destroyed by exit()
    at_exit = std::move(*p);
    EXPECT_EQ(dies_of([] { std::exit(0); }), 0);
    EXPECT_EQ(hf::test::read_header(path, 0).open, 1U);
    at_exit.reset();
    EXPECT_EQ(hf::test::read_header(path, 0).open, 0U);
}

/// The descriptors of its parent's pools are free in a child, for files of its own.
TEST_F(Fork, AGroupThatTheForkWasInEndsInTheParentAlone) {
    options.mode = mode::power;
    pool p = open_at(path);
    std::optional<durable_together> group(std::in_place, p);
    void* const block = hf_alloc(64);
    EXPECT_TRUE(in_child([&] {
        constexpr unsigned files = 16;
        const auto name = [&](unsigned n) { return directory + "/" + std::to_string(n); };
        for (unsigned n = 0; n < files; ++n)
            if (::open(name(n).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0) return false;
        pool own = open_at(other()); // another log, and its lines
        hf_free(hf_alloc(64));
        group.reset();
        const durable_together refused{p};
        for (unsigned n = 0; n < files; ++n)
            if (!hf::test::contents(name(n)).empty()) return false;
        return own.logged().waits != 0;
    }));
    hf_free(block);
    group.reset();
}

TEST_F(Fork, AChildOpensOtherPoolsAndForksItself) {
    pool p = open_at(path);
    auto* word = p.root<std::uint64_t>();
    EXPECT_TRUE(in_child([&] {
        pool own = open_at(other());
        auto* mine = own.root<std::uint64_t>();
        *mine = 5;
        void* block = hf_alloc(64); // the process's only pool
        hf_free(block);
        const bool grandchild_refused = dies_of([&] { *mine = 6; }) == SIGSEGV;
        const bool parents_refused = dies_of([&] { *word = 6; }) == SIGSEGV;
        return own.contains(block) && grandchild_refused && parents_refused && *mine == 5;
    }));
    *word = 2;
    EXPECT_EQ(*open_at(other()).root<std::uint64_t>(), 5U);
}

TEST_F(Fork, TheLockIsTheParentsAlone) {
    options.mode = mode::pmem;
    std::optional<pool> p = open_at(path);
    *p->root<std::uint64_t>() = 1;
    int closed[2], done[2];
    ASSERT_TRUE(::pipe(closed) == 0 && ::pipe(done) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char byte = 0;
        const auto busy = pool::open(path, options);
        const bool refused = !busy && busy.error().code() == errc::in_use;
        (void)!::write(done[1], "1", 1);
        (void)!::read(closed[0], &byte, 1);
        pool mine = open_at(path); // at the same addresses
        *mine.root<std::uint64_t>() += 1;
        p.reset(); // the parent's: nothing of it may touch the new mapping
        ::_exit(refused && *mine.root<std::uint64_t>() == 2 ? 0 : 1);
    }
    char byte = 0;
    EXPECT_EQ(::read(done[0], &byte, 1), 1);
    p.reset();
    EXPECT_EQ(::write(closed[1], "1", 1), 1);
    EXPECT_EQ(end_of(child), 0);
    // A child that lives on keeps nobody out: the parent closes, and somebody opens.
    p = open_at(path);
    const pid_t idle = ::fork();
    if (idle == 0)
        for (;;) ::pause();
    p.reset();
    EXPECT_TRUE(pool::open(path, options)) << "the child does not hold the lock";
    ::kill(idle, SIGKILL);
    EXPECT_EQ(WTERMSIG(end_of(idle)), SIGKILL);
    for (int fd : {closed[0], closed[1], done[0], done[1]}) ::close(fd);
}

TEST_F(Fork, ProgramsThatTheParentStartsRunAndItGoesOn) {
    pool p = open_at(path);
    auto* word = p.root<std::uint64_t>();
    EXPECT_EQ(std::system("true"), 0);
    pid_t started = 0;
    char name[] = "true";
    char* arguments[] = {name, nullptr};
    ASSERT_EQ(::posix_spawnp(&started, "true", nullptr, nullptr, arguments, environ), 0);
    EXPECT_EQ(end_of(started), 0);
    *word = 3;
    void* block = hf_alloc(64);
    EXPECT_NE(block, nullptr);
    hf_free(block);
}

TEST_F(Fork, WhileThreadsOpenAndClosePools) {
    pool p = open_at(path);
    std::atomic<bool> stop{false};
    std::thread opener([&] {
        while (!stop) (void)open_at(other());
    });
    for (int i = 0; i < 50; ++i)
        EXPECT_TRUE(in_child([&] {
            const pool own = open_at(directory + "/mine." + std::to_string(i));
            return !own.path().empty();
        }));
    stop = true;
    opener.join();
    *p.root<std::uint64_t>() = 1;
}

} // namespace
