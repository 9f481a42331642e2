// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: after any life of a pool in mode power, the next open has every section that returned.
// Method: child processes that are killed while they work, recover, grow the pool, fill its log, or
// fork. Promises to them are kept in memory that outlives them.
#include <section/list_sections.hpp>

#include <holdfast/author/blocks.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace hf;
using list_sections::list;

std::string contents(const std::string& path) {
    std::ostringstream all;
    all << std::ifstream(path, std::ios::binary).rdbuf();
    return all.str();
}

/// Runs 'body' in a child and returns how that ended.
int in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        try {
            body();
        } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
        }
        ::_exit(::testing::Test::HasFailure() ? 3 : 0);
    }
    int how = 0;
    EXPECT_EQ(::waitpid(child, &how, 0), child);
    return how;
}

void die() {
    if (!::testing::Test::HasFailure()) ::kill(::getpid(), SIGKILL);
}

/// Runs a child that must be killed at its end.
void killed(const std::function<void()>& body) {
    const int how = in_child(body);
    EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
}

class PowerLives : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_lives.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        options.layout = "lives/1";
        options.create_bytes = 256_KiB; // a log of two halves of 64 KiB
        options.max_bytes = 16_MiB;
        options.mode = mode::power;
        options.engines = {clobber::engine(), undo::engine()};
        void* const at =
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(at, MAP_FAILED);
        promised = new (at) std::atomic<std::uint64_t>[8]{};
    }
    void TearDown() override {
        ::munmap(promised, 4096);
        std::filesystem::remove_all(directory);
    }
    pool open_good() {
        auto opened = pool::open(path, options);
        if (!opened) throw std::runtime_error(opened.error().what());
        return std::move(*opened);
    }
    void push(list* l, std::uint64_t n) {
        for (; n > 0; --n) {
            list_sections::push(GetParam(), l, l->count + 1);
            promised[0] = l->count;
        }
    }
    /// The list has what was promised, and at most one section more, whole.
    void expect_kept(pool& p) {
        const std::uint64_t found = p.root<list>()->count;
        EXPECT_GE(found, promised[0]);
        EXPECT_LE(found, promised[0] + 1);
        EXPECT_STREQ(list_sections::fault(p, found), nullptr);
        promised[0] = found;
    }
    std::string directory, path;
    open_options options;
    std::atomic<std::uint64_t>* promised = nullptr;
};

// The pool grows, the log goes round many times, and sequence numbers begin anew with each open.
TEST_P(PowerLives, KilledAgainAndAgainWhileItWorks) {
    for (int life = 0; life < 24; ++life) {
        killed([&] {
            pool p = open_good();
            expect_kept(p);
            if (::testing::Test::HasFailure()) return;
            list_sections::steps_left = 40 + life * 97;
            push(p.root<list>(), 1'000'000);
        });
        ASSERT_FALSE(HasFailure()) << "life " << life;
    }
    pool p = open_good();
    expect_kept(p);
    EXPECT_GT(p.size_bytes(), options.create_bytes);
    EXPECT_GT(promised[0], 1000U);
}

TEST_P(PowerLives, KilledInRecoveryAndInRecoveryAgain) {
    killed([&] {
        pool p = open_good();
        push(p.root<list>(), 40);
        list_sections::steps_left = 8;
        push(p.root<list>(), 1);
    });
    // Re-execution takes the same steps; rolling back takes none.
    for (int steps = 0; steps < 12; ++steps)
        killed([&] {
            list_sections::steps_left = steps;
            pool p = open_good();
            die();
        });
    pool p = open_good();
    expect_kept(p);
}

TEST_P(PowerLives, SeveralThreadsKilledTogether) {
    constexpr unsigned threads = 3;
    struct lists {
        list of[threads];
    };
    killed([&] {
        pool p = open_good();
        lists* const all = p.root<lists>();
        std::vector<std::thread> working;
        for (unsigned t = 0; t < threads; ++t)
            working.emplace_back([&, t] {
                for (std::uint64_t n = 1;; ++n) {
                    list_sections::push(GetParam(), &all->of[t], n);
                    promised[t] = n;
                    if (n == 400) die();
                }
            });
        for (std::thread& t : working) t.join();
    });
    pool p = open_good();
    std::uint64_t blocks = 1;
    for (unsigned t = 0; t < threads; ++t) {
        const list& l = p.root<lists>()->of[t];
        EXPECT_GE(l.count, promised[t]);
        EXPECT_LE(l.count, promised[t] + 1);
        std::uint64_t next = l.count;
        for (const auto* n = l.head; n != nullptr; n = n->next) EXPECT_EQ(n->value, next--);
        EXPECT_EQ(next, 0U);
        blocks += l.count;
    }
    EXPECT_EQ(account(p).blocks, blocks);
}

TEST_P(PowerLives, ReadOnlyShowsTheLogAndWritesNothing) {
    killed([&] {
        pool p = open_good();
        push(p.root<list>(), 30);
        die();
    });
    const std::string file = contents(path), log = contents(path + "-power");
    options.read_only = true;
    {
        // A section of clobber whose mark is not in the log would have to be completed, which
        // stores.
        auto p = pool::open(path, options);
        ASSERT_EQ(p.operator bool(), !GetParam());
        if (GetParam()) EXPECT_EQ(p.error().code(), errc::torn) << p.error().what();
        else EXPECT_STREQ(list_sections::fault(*p, 30), nullptr);
    }
    EXPECT_TRUE(contents(path) == file && contents(path + "-power") == log);
    options.read_only = false;
    pool p = open_good();
    expect_kept(p);
}

TEST_P(PowerLives, ElsewhereThanAtItsAddress) {
    killed([&] {
        pool p = open_good();
        push(p.root<list>(), 30);
        die();
    });
    options.expert.relocate = relocation::always;
    killed([&] {
        auto p = pool::open(path, options);
        EXPECT_EQ(p.operator bool(),
                  !GetParam()); // no code of clobber's runs there that was not built for it
        if (!p) EXPECT_EQ(p.error().code(), errc::address_taken) << p.error().what();
        else EXPECT_TRUE(p->relocated());
        die(); // recovered, and left open there
    });
    options.expert.relocate = relocation::never;
    pool p = open_good();
    EXPECT_FALSE(p.relocated());
    expect_kept(p);
}

TEST_P(PowerLives, RaisesItsLimitWhereItWasLeftOpen) {
    killed([&] {
        pool p = open_good();
        push(p.root<list>(), 30);
        die();
    });
    options.max_bytes = 64_MiB;
    killed([&] {
        pool p = open_good();
        EXPECT_EQ(p.max_bytes(), 64_MiB);
        push(p.root<list>(), 300);
        die();
    });
    pool p = open_good();
    expect_kept(p);
    EXPECT_EQ(p.max_bytes(), 64_MiB);
}

TEST_P(PowerLives, AChildOfForkHasNoPartInIt) {
    killed([&] {
        pool p = open_good();
        push(p.root<list>(), 30);
        const int how = in_child([&] {
            pool gone = std::move(p); // ends here, and must leave the log alone
        });
        EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
        EXPECT_TRUE(std::filesystem::exists(path + "-power"));
        push(p.root<list>(), 300);
        die();
    });
    pool p = open_good();
    expect_kept(p);
    EXPECT_EQ(promised[0], 330U);
}

INSTANTIATE_TEST_SUITE_P(Engines, PowerLives, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "clobber" : "undo"; });

} // namespace
