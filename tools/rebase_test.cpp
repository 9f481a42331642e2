// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a pool that is given another address holds what it held, is open beside its copy, and a
// kill at any moment leaves it where it was or at the new place. Method: pools of containers and
// persistent objects are moved; a process that moves one is killed at each of its system calls.
#include "rebase.hpp"
#include <open/pool_impl.hpp>
#include <pool/pool_file.hpp>
#include <verify/examine.hpp>
#include <verify/read_file.hpp>

#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

class tally {
public:
    static constexpr simpo::class_name simpo_class{"tally", 1};
    void add(std::uint64_t n) noexcept { sum_ += n; }
    std::uint64_t sum() const noexcept { return sum_; }

private:
    std::uint64_t sum_ = 0;
};

std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

class Rebase : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override {
        std::string pattern = "/dev/shm/hf_rebase_test.XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory = pattern;
        path = directory + "/pool.hf";
        copy = directory + "/copy.hf";
        ::setenv("HOLDFAST_ADDRESSES", (directory + "/register").c_str(), 1);
        how.layout = "rebase/1";
        how.mode = GetParam();
        how.create_bytes = 1 << 20;
        how.max_bytes = 16 << 20;
        how.engines = {mod::engine(), simpo::engine()};
    }
    void TearDown() override {
        ::unsetenv("HOLDFAST_ADDRESSES");
        std::filesystem::remove_all(directory);
    }
    pool opened(const std::string& at) const {
        auto open = pool::open(at, how);
        if (!open) ADD_FAILURE() << open.error().what();
        return std::move(*open);
    }
    /// A pool with nodes of several kinds and an object, and one vector that shares nodes.
    void make() const {
        pool in = opened(path);
        auto prices = mod::map<std::string, std::uint64_t>::open(in, {"prices"});
        auto days = mod::ordered_map<std::uint64_t, std::string>::open(in, {"days"});
        auto all = mod::vector<std::uint64_t>::open(in, {"all"});
        auto it = simpo::object<tally>::create(in, "it");
        ASSERT_TRUE(prices && days && all && it);
        for (std::uint64_t i = 0; i < 300; ++i) {
            ASSERT_TRUE(prices->insert_or_assign("key " + std::to_string(i), i));
            ASSERT_TRUE(days->insert_or_assign(i, "day " + std::to_string(i)));
            ASSERT_TRUE(all->push_back(i * i).ok());
            it->defer<&tally::add>(i);
        }
        it->sync();
    }
    static void expect_whole(const pool& in) {
        auto& writable = const_cast<pool&>(in);
        auto prices = mod::map<std::string, std::uint64_t>::open(writable, {"prices"});
        auto days = mod::ordered_map<std::uint64_t, std::string>::open(writable, {"days"});
        auto all = mod::vector<std::uint64_t>::open(writable, {"all"});
        auto it = simpo::object<tally>::find(writable, "it");
        ASSERT_TRUE(prices && days && all && it);
        ASSERT_EQ(prices->size(), 300U);
        ASSERT_EQ(days->size(), 300U);
        ASSERT_EQ(all->size(), 300U);
        for (std::uint64_t i = 0; i < 300; ++i) {
            ASSERT_EQ(*prices->get("key " + std::to_string(i)), i);
            ASSERT_EQ(days->get(i), "day " + std::to_string(i));
            ASSERT_EQ((*all)[i], i * i);
        }
        EXPECT_EQ(it->call<&tally::sum>(), 300U * 299 / 2);
    }
    std::uint64_t base_of(const std::string& at) const {
        const auto file = verify::read_file::open(at);
        return file ? verify::examine(file->bytes(), verify::depth::deep).header.base_address : 0;
    }

    std::string directory, path, copy;
    open_options how;
};

TEST_P(Rebase, APoolThatWasMovedIsOpenBesideItsCopy) {
    make();
    std::filesystem::copy_file(path, copy);
    {
        const pool in = opened(path);
        EXPECT_EQ(pool::open(copy, how).error().code(), errc::address_taken);
    }
    const auto moved = tools::rebase_pool(copy, how);
    ASSERT_TRUE(moved) << moved.error().what();
    EXPECT_EQ(moved->from, base_of(path));
    EXPECT_EQ(moved->to, base_of(copy));
    {
        const auto file = verify::read_file::open(copy);
        ASSERT_TRUE(file);
        EXPECT_EQ(verify::examine(file->bytes(), verify::depth::deep).outcome,
                  verify::verdict::good)
            << "its seal counts";
    }
    pool first = opened(path), second = opened(copy);
    EXPECT_FALSE(second.relocated());
    expect_whole(first);
    expect_whole(second);
    auto changed = mod::map<std::string, std::uint64_t>::open(second, {"prices"});
    ASSERT_TRUE(changed->insert_or_assign("key 1", 4711));
    expect_whole(first);
}

TEST_P(Rebase, ACopyIsReadBesideItsOriginal) {
    make();
    std::filesystem::copy_file(path, copy);
    const pool first = opened(path);
    how.read_only = true;
    const pool second = opened(copy);
    EXPECT_TRUE(second.relocated());
    expect_whole(first);
    expect_whole(second);
}

TEST_P(Rebase, APoolThatWasLeftOpenIsRecoveredFirst) {
    make();
    how.engines = {mod::engine(), simpo::engine()};
    {
        pool left = opened(path);
        pool::impl::abandon(std::move(left));
    }
    const std::uint64_t before = base_of(path);
    const auto moved = tools::rebase_pool(path, how);
    ASSERT_TRUE(moved) << moved.error().what();
    EXPECT_NE(base_of(path), before);
    expect_whole(opened(path));
}

TEST_P(Rebase, WhatMayHoldAddressesIsNamedAndTheFileStays) {
    make();
    {
        pool in = opened(path);
        ASSERT_NE(in.root<std::uint64_t>(), nullptr);
    }
    const std::string before = contents(path);
    const auto refused = tools::rebase_pool(path, how);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::conflict);
    EXPECT_NE(refused.error().what().find("a root object of 8 bytes"), std::string::npos)
        << refused.error().what();
    EXPECT_EQ(contents(path), before);
    std::string other = before; // without the root word its block is nobody's
    std::memset(other.data() + root_words_offset, 0, 16);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << other;
    const auto unknown = tools::rebase_pool(path, how);
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().what().find("1 blocks that no container"), std::string::npos)
        << unknown.error().what();
    EXPECT_EQ(contents(path), other);
}

/// Runs the command in a child that dies at its n-th system call; false: it had none left.
bool killed_at(unsigned n, const std::string& path, const open_options& how) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        ::raise(SIGSTOP);
        ::_exit(tools::rebase_pool(path, how) ? 0 : 1);
    }
    int state = 0;
    ::waitpid(child, &state, 0);
    ::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (unsigned stops = 0; stops < n;) {
        ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
        if (::waitpid(child, &state, 0) != child) return false;
        if (WIFEXITED(state)) {
            EXPECT_EQ(WEXITSTATUS(state), 0);
            return false;
        }
        stops += WIFSTOPPED(state) && WSTOPSIG(state) == (SIGTRAP | 0x80);
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, &state, 0);
    return true;
}

TEST_P(Rebase, KilledAtAnySystemCallItIsWhereItWasOrHasMoved) {
    make();
    const std::string before = contents(path);
    const std::uint64_t at_first = base_of(path);
    unsigned moved = 0, stayed = 0;
    for (unsigned n = 1;; ++n) {
        for (const auto& each : std::filesystem::directory_iterator(directory))
            if (each.is_regular_file()) std::filesystem::remove(each);
        std::ofstream(path, std::ios::binary) << before;
        if (!killed_at(n, path, how)) break;
        ++(base_of(path) == at_first ? stayed : moved);
        if (n % 5 == 0) expect_whole(opened(path));
        if (n % 5 == 0) continue;
        const auto again = tools::rebase_pool(path, how); // goes on
        ASSERT_TRUE(again) << n << ": " << again.error().what();
        if (n % 7 == 0) expect_whole(opened(path));
    }
    EXPECT_GT(stayed, 20U);
    EXPECT_GT(moved, 0U);
    EXPECT_NE(base_of(path), at_first);
}

INSTANTIATE_TEST_SUITE_P(Modes, Rebase, ::testing::Values(mode::process, mode::pmem, mode::power),
                         [](const auto& of) {
                             return std::string(of.param == mode::process ? "process"
                                                : of.param == mode::pmem  ? "pmem"
                                                                          : "power");
                         });

} // namespace
