// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: plain stores to members that follow from links need no log with engine selective, and are
// what they were with any other; what a kill leaves of them is found again. Method: a tree in plain
// code with the members declared once; log entries are counted, a child is killed, its file's
// members are overwritten, and the pool opened again.
#include <holdfast/alloc.hpp>
#include <holdfast/author/derived.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>
#include <test/across/language/derived_tree.hpp>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::derived_tree;

HF_TXFUNC bool insert(tree* in, long key) noexcept {
    node *above = nullptr, **to = &in->top;
    while (*to != nullptr) {
        above = *to;
        to = &above->child[above->key < key];
    }
    node* one = hf::make<node>();
    if (one == nullptr) return false;
    one->key = key;
    one->parent = above;
    *to = one;
    for (node* each = one; each != nullptr; each = each->parent) each->nodes = nodes_of(*each);
    ++in->count;
    return true;
}
/// The new top has all that was below the old one on its left.
HF_TXFUNC void hang(tree* in, node* old, node* top) noexcept {
    top->child[0] = old;
    old->parent = top;
    top->parent = nullptr;
    top->nodes = nodes_of(*top);
    in->top = top;
}
/// Through a reference: the compiler does not see which member it is.
HF_TXFUNC void through(long& place, long value) noexcept { place = value; }

class Derived : public ::testing::Test {
protected:
    const std::string path_ = "/dev/shm/holdfast-derived." + std::to_string(::getpid());
    open_options options_;

    void SetUp() override {
        options_.layout = "derived/1";
        options_.create_bytes = options_.max_bytes = 1_MiB;
        options_.mode = mode::pmem;
        rebuilt_by(recovery::rebuild);
    }
    void TearDown() override { std::remove(path_.c_str()); }
    void rebuilt_by(std::function<void(pool&)> rebuild) {
        options_.engines = engines_of_build({.selective = {.rebuild = std::move(rebuild)}});
    }

    /// A process that inserts keys and is killed; 'then' runs last.
    template <class F> void leave_open(F then) const {
        const pid_t child = ::fork();
        if (child == 0) {
            auto opened = pool::open(path_, options_);
            if (!opened) ::_exit(1);
            for (const long key : {50, 30, 70, 20, 40, 60, 80}) insert(opened->root<tree>(), key);
            then(*opened);
            ::kill(::getpid(), SIGKILL);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    static std::uint64_t entries() { return persist::thread_counters().log_entries; }
};

TEST_F(Derived, PlainStoresToDerivedMembersAreNotLogged) {
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    tree* in = opened->root<tree>();
    insert(in, 50);
    insert(in, 30);
    std::uint64_t before = entries();
    insert(in, 20); // changes two other nodes' numbers, and the count
    EXPECT_EQ(entries() - before, selective::chosen ? 2 : 5) << "the node made, and its link";
    EXPECT_TRUE(recovery::holds(*opened, *in));
    before = entries();
    through(in->count, 3);
    EXPECT_EQ(entries() - before, 1);
}

TEST_F(Derived, WithoutARebuildFunctionTheyAreLogged) {
    rebuilt_by({});
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    tree* in = opened->root<tree>();
    insert(in, 50);
    const std::uint64_t before = entries();
    insert(in, 30);
    EXPECT_EQ(entries() - before, 4);
}

TEST_F(Derived, HoldsTellsEveryMemberThatIsWrong) {
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    tree* in = opened->root<tree>();
    for (const long key : {50, 30, 70}) insert(in, key);
    ASSERT_TRUE(recovery::holds(*opened, *in));
    const auto wrong = [&](auto& place, auto value) {
        std::swap(place, value);
        const bool told = !recovery::holds(*opened, *in);
        std::swap(place, value);
        return told && recovery::holds(*opened, *in);
    };
    EXPECT_TRUE(wrong(in->count, 2L));
    EXPECT_TRUE(wrong(in->top->parent, in->top));
    EXPECT_TRUE(wrong(in->top->child[1]->parent, static_cast<node*>(nullptr)));
    EXPECT_TRUE(wrong(in->top->child[0]->nodes, 2L));
    EXPECT_TRUE(wrong(in->top->nodes, 2L));
}

/// Only for engine selective: with others nothing is lazy.
class FoundAgain : public Derived {};

TEST_F(FoundAgain, WhatAKillHasLeftIsFoundAgain) {
    for (const mode m : {mode::process, mode::pmem, mode::power}) {
        std::remove(path_.c_str());
        options_.mode = m;
        options_.create_bytes = options_.max_bytes = 2_MiB;
        leave_open([](pool& of) { // as if nothing had been written back
            auto* in = of.root<tree>();
            in->count = -1;
            for (node* each : {in->top, in->top->child[0], in->top->child[1]->child[0]}) {
                each->parent = each;
                each->nodes = -7;
            }
        });
        auto opened = pool::open(path_, options_);
        ASSERT_TRUE(opened) << opened.error().what();
        tree* in = opened->root<tree>();
        EXPECT_TRUE(recovery::holds(*opened, *in)) << static_cast<int>(m);
        EXPECT_EQ(in->count, 7);
        EXPECT_EQ(in->top->nodes, 7);
    }
}

TEST_F(FoundAgain, WhatHasBeenFoundAgainIsWrittenBackWithTheClose) {
    const auto flushes = [&](bool damaged, const std::function<void(pool&)>& rebuild) {
        std::remove(path_.c_str());
        leave_open([&](pool& of) {
            if (damaged) of.root<tree>()->top->child[0]->nodes = -7;
        });
        rebuilt_by(rebuild);
        const std::uint64_t before = persist::thread_counters().flushes;
        { EXPECT_TRUE(pool::open(path_, options_)); }
        return persist::thread_counters().flushes - before;
    };
    // Right values may have been only in the caches of the process that is dead.
    const auto found = flushes(true, recovery::rebuild), right = flushes(false, recovery::rebuild);
    EXPECT_EQ(found, right);
    EXPECT_GE(right, flushes(false, [](pool&) {}) + 4); // seven nodes and the root
}

TEST_F(FoundAgain, ByATranslationUnitThatIsBuiltForNoEngine) {
    for (const bool elsewhere : {false, true}) {
        std::remove(path_.c_str());
        leave_open([](pool& of) {
            of.root<tree>()->count = -1;
            of.root<tree>()->top->child[0]->parent = nullptr;
        });
        if (elsewhere) rebuilt_by(found_elsewhere());
        const std::uint64_t before = persist::thread_counters().flushes;
        {
            auto opened = pool::open(path_, options_);
            ASSERT_TRUE(opened) << opened.error().what();
            EXPECT_TRUE(recovery::holds(*opened, *opened->root<tree>())) << elsewhere;
        }
        EXPECT_GE(persist::thread_counters().flushes - before, 8) << "seven nodes and the root";
    }
}

TEST_F(FoundAgain, NotTheRestWhereLazyIsNothing) {
    leave_open([](pool& of) { of.root<tree>()->count = -1; });
    rebuilt_by(rest_found_elsewhere());
    EXPECT_THROW(static_cast<void>(pool::open(path_, options_)), std::logic_error);
    rebuilt_by([](pool& of) { EXPECT_EQ(of.root<tree>()->count, -1) << "as it was"; });
    EXPECT_TRUE(pool::open(path_, options_));
}

TEST_F(FoundAgain, ARootOfAnotherTypeEndsTheOpen) {
    leave_open([](pool&) {});
    struct one_tree_of_many {
        node* top;
        node* others[3];
    };
    using of_many = derived::recovery<derived::links<&one_tree_of_many::top, &node::child>,
                                      derived::parent<&node::parent>>;
    rebuilt_by(of_many::rebuild); // would find nothing again, and say nothing
    EXPECT_THROW(static_cast<void>(pool::open(path_, options_)), std::logic_error);
    rebuilt_by(recovery::rebuild);
    EXPECT_TRUE(pool::open(path_, options_));
}

TEST_F(FoundAgain, LinksInACircleEndTheOpenWithNothingStored) {
    options_.mode = mode::process;
    leave_open([](pool& of) {
        auto* in = of.root<tree>();
        in->top->child[0]->child[0]->child[0] = in->top;
        in->count = -1;
    });
    EXPECT_THROW(static_cast<void>(pool::open(path_, options_)), std::length_error);
    rebuilt_by([](pool& of) { EXPECT_EQ(of.root<tree>()->count, -1); });
    auto opened = pool::open(path_, options_);
    EXPECT_TRUE(opened);
}

TEST_F(FoundAgain, AListOfAHundredThousandNodesNeedsNoStack) {
    options_.create_bytes = options_.max_bytes = 32_MiB;
    options_.mode = mode::process;
    const pid_t child = ::fork();
    if (child == 0) {
        auto opened = pool::open(path_, options_);
        if (!opened) ::_exit(1);
        auto* in = opened->root<tree>();
        insert(in, 0);
        for (long i = 1; i < 100'000; ++i) {
            insert(in, i); // to the right of the top, from where the next line takes it
            node* old = in->top;
            node* fresh = old->child[1];
            old->child[1] = nullptr;
            hang(in, old, fresh);
        }
        in->top->child[0]->nodes = 0;
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    auto opened = pool::open(path_, options_);
    ASSERT_TRUE(opened) << opened.error().what();
    EXPECT_EQ(opened->root<tree>()->top->nodes, 100'000);
    EXPECT_TRUE(recovery::holds(*opened, *opened->root<tree>()));
}

} // namespace
