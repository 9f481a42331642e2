// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: a child of fork() neither closes nor changes a MOD pool that its parent has open. Method:
// a child that does, then more work of the parent's, which is killed; what the next open finds is
// what the parent has committed.
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/store.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::literals;
using numbers = mod::map<std::uint64_t, std::uint64_t>;

const std::string path = "/dev/shm/hf_mod_fork." + std::to_string(::getpid());

pool open_one(mode m) {
    open_options how;
    how.create_bytes = 1_MiB;
    how.mode = m;
    how.engines = {mod::engine()};
    auto opened = pool::open(path, how);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::abort();
    return std::move(*opened);
}

void in_child(const std::function<void()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        body();
        ::_exit(0);
    }
    int how = 0;
    ::waitpid(child, &how, 0);
}

class ModFork : public testing::TestWithParam<mode> {};

TEST_P(ModFork, AChildNeitherClosesNorChangesItsParentsPool) {
    constexpr std::uint64_t count = 200;
    for (const int action : {0, 1, 2}) {
        ::unlink(path.c_str());
        in_child([&] {
            std::optional<pool> p = open_one(GetParam());
            auto all = *numbers::open(*p, {"all"});
            for (std::uint64_t i = 0; i < count; ++i) (void)all.insert_or_assign(i, i);
            in_child([&] {
                if (::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(1);
                if (action == 0) p.reset();
                if (action == 1) (void)all.insert_or_assign(7, 8);
                if (action == 2) (void)mod::store::of(*p).collect();
            });
            // What the child has taken for free, if it could, is used anew now, and the other way
            // round.
            for (std::uint64_t i = 0; i < count; i += 2) (void)all.erase(i);
            for (std::uint64_t i = 0; i < count; ++i) (void)all.insert_or_assign(1000 + i, i);
            mod::store::of(*p).settle();
            ::kill(::getpid(), SIGKILL);
        });
        pool p = open_one(GetParam());
        EXPECT_TRUE(mod::store::of(p).wait_for_trace().ok());
        EXPECT_TRUE(mod::store::of(p).verify().ok());
        auto all = *numbers::open(p, {"all"});
        EXPECT_EQ(all.size(), count / 2 + count) << "action " << action;
        for (std::uint64_t i = 0; i < count; ++i) {
            EXPECT_EQ(all.get(i) != nullptr, i % 2 == 1);
            const auto late = all.get(1000 + i);
            EXPECT_TRUE(late != nullptr && *late == i) << i;
        }
    }
    ::unlink(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(Modes, ModFork, testing::Values(mode::process, mode::pmem),
                         [](const auto& of) {
                             return of.param == mode::process ? "process" : "pmem";
                         });

} // namespace
