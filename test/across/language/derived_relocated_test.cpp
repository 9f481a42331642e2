// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: members that follow from links are found again in a pool that is mapped elsewhere than
//           where the crash was.
// Method: built relocatable; a child is killed, its file's members are overwritten, and the pool
//           opened elsewhere.
#include <holdfast/alloc.hpp>
#include <holdfast/author/derived.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;

struct job {
    job *next, *previous;
    long number;
};
struct queue {
    job* first;
    long count;
};
using recovery = derived::recovery<derived::links<&queue::first, &job::next>,
                                   derived::parent<&job::previous>, derived::count<&queue::count>>;

HF_TXFUNC bool push(queue* to, long number) noexcept {
    job* one = hf::make<job>();
    if (one == nullptr) return false;
    one->number = number;
    one->next = to->first;
    if (to->first != nullptr) to->first->previous = one;
    to->first = one;
    ++to->count;
    return true;
}

TEST(DerivedElsewhere, WhatAKillHasLeftIsFoundAgain) {
    const std::string path = "/dev/shm/holdfast-derived-elsewhere." + std::to_string(::getpid());
    open_options options;
    options.layout = "derived/elsewhere";
    options.create_bytes = options.max_bytes = 1_MiB;
    options.mode = mode::pmem;
    options.engines = engines_of_build({.selective = {.rebuild = recovery::rebuild}});
    const pid_t child = ::fork();
    if (child == 0) {
        auto opened = pool::open(path, options);
        if (!opened) ::_exit(1);
        auto* in = opened->root<queue>();
        for (long i = 0; i < 5; ++i) push(in, i);
        in->count = -1; // as if it had not been written back
        in->first->next->previous = nullptr;
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (const relocation where : {relocation::always, relocation::never}) {
        options.expert.relocate = where;
        auto opened = pool::open(path, options);
        ASSERT_TRUE(opened) << opened.error().what();
        EXPECT_EQ(opened->relocated(), where == relocation::always);
        auto* in = opened->root<queue>();
        EXPECT_TRUE(recovery::holds(*opened, *in));
        EXPECT_EQ(in->count, where == relocation::always ? 5 : 6);
        push(in, 5);
        EXPECT_TRUE(recovery::holds(*opened, *in));
    }
    std::remove(path.c_str());
}

} // namespace
