// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a child of fork() neither closes nor changes a MOD pool that its parent has open. Method: a
// child that tries to, then more work of the parent, which is killed; the next open finds what the
// parent has committed. And children made while a thread commits for the first time.
#include <mod/test_support.hpp>

#include <holdfast/mod/map.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using numbers = mod::map<std::uint64_t, std::uint64_t>;

void in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        body();
        ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
}

class ModFork : public mod::test::PoolTest {};

TEST_P(ModFork, AChildNeitherClosesNorChangesItsParentsPool) {
    constexpr std::uint64_t count = 200;
    for (const int action : {0, 1, 2}) {
        in.make_new(GetParam());
        in.close();
        in_child([&] {
            in.open();
            auto all = in.get<numbers>();
            for (std::uint64_t i = 0; i < count; ++i) (void)all.insert_or_assign(i, i);
            in_child([&] {
                if (::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
                if (action == 0) in.close();
                if (action == 1) (void)all.insert_or_assign(7, 8);
                if (action == 2) (void)in.store().collect();
            });
            // If the child had taken used memory for free, it would be used anew now; the same the
            // other way round.
            for (std::uint64_t i = 0; i < count; i += 2) (void)all.erase(i);
            for (std::uint64_t i = 0; i < count; ++i) (void)all.insert_or_assign(1000 + i, i);
            in.store().settle();
            ::kill(::getpid(), SIGKILL);
        });
        in.open();
        EXPECT_TRUE(in.store().wait_for_trace().ok());
        EXPECT_TRUE(in.store().verify().ok());
        auto all = in.get<numbers>();
        EXPECT_EQ(all.size(), count / 2 + count) << "action " << action;
        for (std::uint64_t i = 0; i < count; ++i) {
            EXPECT_EQ(all.get(i) != nullptr, i % 2 == 1);
            const auto late = all.get(1000 + i);
            EXPECT_TRUE(late != nullptr && *late == i) << i;
        }
    }
}

pool open_own(const std::string& path) {
    open_options o;
    o.layout = "mod_fork_test/1";
    o.create_bytes = 256_KiB;
    o.engines = {mod::engine()};
    auto p = pool::open(path, o);
    if (!p) ::_exit(4);
    return std::move(*p);
}
void insert_some(pool& p, std::uint64_t count) {
    auto all = numbers::open(p, {"numbers"});
    if (!all) ::_exit(5);
    for (std::uint64_t i = 0; i < count; ++i)
        if (!all->insert_or_assign(i, i)) ::_exit(6);
}

/// A process that has committed nothing yet, and forks while a thread of it begins to. True when
/// its children got through.
bool fork_during_first_commits(const std::string& path) {
    pool mine = open_own(path);
    std::thread committing([&] { insert_some(mine, 60); });
    bool all_well = true;
    for (int i = 0; i < 12; ++i) {
        const std::string own = path + ".child";
        ::unlink(own.c_str());
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(60); // it hangs
            pool p = open_own(own);
            insert_some(p, 20);
            ::_exit(0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        ::unlink(own.c_str());
        all_well = all_well && how == 0;
    }
    committing.join();
    return all_well;
}

TEST(ModForkEarly, AChildWaitsForNoThreadOfItsParent) {
    const std::string path = "/dev/shm/hf_mod_fork_early." + std::to_string(::getpid());
    for (int round = 0; round < 6; ++round) {
        ::unlink(path.c_str());
        const pid_t child = ::fork();
        if (child == 0) ::_exit(fork_during_first_commits(path) ? 0 : 1);
        int how = 0;
        ::waitpid(child, &how, 0);
        ASSERT_EQ(how, 0) << "round " << round;
    }
    ::unlink(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Modes, ModFork, testing::ValuesIn(mod::test::both_modes),
                         mod::test::mode_name);

} // namespace
