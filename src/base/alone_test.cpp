// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/alone.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

/// In a child, which has the one thread that forked.
TEST(Alone, AProcessIsUntilItHasAThread) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
#if defined(__GLIBC__)
        if (!hf::is_alone()) ::_exit(1);
#endif
        bool beside = true, behind = true;
        std::thread other([&] { beside = hf::is_alone(); });
        behind = hf::is_alone();
        other.join();
        ::_exit(beside || behind ? 2 : 0);
    }
    int how = 0;
    ASSERT_EQ(::waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0) << how;
}

} // namespace
