// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: whenever a process forks, between sections of engine redo, or of engine undo that leaves
//           its stores to the
// next one, whose mark and stores are due, in the middle of one on another thread, or in its own,
// its pool holds afterwards what it would hold without, also when it is killed; and the child,
// which is refused the pool, runs sections on pools of its own. Method: a process that is killed at
// the end makes sections and children, these make theirs, and the files are opened again.
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <pool/test_support.hpp>
#include <power/log.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/redo.hpp>
#include <holdfast/txfunc.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <tuple>

namespace {

using namespace hf;
using hf::test::in_child;

struct node {
    node* next;
    std::uint64_t value;
};
struct list {
    node* head;
    std::uint64_t count, sum;
    std::uint64_t spread[40]; // as many lines as the next section may be left
};
const hf_txfunc described{HF_ABI_VERSION, 0, 2401, 1, "forking", "here", nullptr, 0, nullptr};

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HF_UNDER_THREAD_SANITIZER
#endif
#endif
#ifdef HF_UNDER_THREAD_SANITIZER
constexpr bool under_thread_sanitizer = true;
#else
constexpr bool under_thread_sanitizer = false;
#endif

/// What the plugin would emit.
struct calls {
    const char* name;
    hf::engine_ptr (*engine)();
    void (*begin)(const hf_txfunc*, const void*);
    const void* (*read)(const void*, std::uint64_t);
    void* (*write)(void*, std::uint64_t);
    void (*commit)();
};
constexpr calls redo_calls{
    "redo",
    redo::engine,
    [](auto* of, auto* given) { hf_redo_begin(of, given); },
    [](auto* at, auto bytes) -> const void* { return hf_redo_read(at, bytes); },
    [](auto* to, auto bytes) -> void* { return hf_redo_write(to, bytes); },
    [] { hf_redo_commit(); }};
constexpr calls undo_calls{"undo_next",
                           [] { return undo::engine({.durable = durability::by_next_section}); },
                           [](auto* of, auto* given) { hf_undo_begin(of, given); },
                           [](auto* at, auto) -> const void* { return at; },
                           [](auto* to, auto bytes) -> void* { return hf_undo_log(to, bytes), to; },
                           [] { hf_undo_commit(); }};
const calls* with = nullptr; // the test's

template <class T> T seen(const T* at) {
    T value;
    std::memcpy(&value, with->read(at, sizeof value), sizeof value);
    return value;
}
template <class T> void store(T* to, T value) {
    std::memcpy(with->write(to, sizeof value), &value, sizeof value);
}

/// A push, then a pop of what is below it: memory is taken and freed, and what was freed taken
/// again.
void push_body(list* l, std::uint64_t value) {
    auto* const made = static_cast<node*>(hf_alloc(sizeof(node)));
    hf_note_store(made, sizeof *made);
    node* const below = seen(&l->head);
    *made = {below != nullptr ? seen(&below->next) : nullptr, value};
    if (below != nullptr) hf_free(below);
    store(&l->head, made);
    store(&l->count, seen(&l->count) + 1);
    store(&l->sum, seen(&l->sum) + value);
    for (std::uint64_t& s : l->spread) store(&s, value);
}
void push(list* l, std::uint64_t value) {
    with->begin(&described, &l);
    push_body(l, value);
    with->commit();
}

/// What is wrong with the pool of a list that has been given 1..count.
const char* fault(pool& p) {
    const list* const l = p.root<list>();
    if (l->sum != l->count * (l->count + 1) / 2) return "the sum is not that of the count";
    for (const std::uint64_t s : l->spread)
        if (s != l->count) return "a word is not of the last section";
    if (l->count != 0 && (l->head == nullptr || l->head->value != l->count)) return "another head";
    if (account(p).blocks != (l->count == 0 ? 1 : 2)) return "a block leaked or lost";
    return nullptr;
}

class Forked : public hf::test::PoolPath<hf::open_options>,
               public ::testing::WithParamInterface<std::tuple<mode, const calls*>> {
protected:
    void SetUp() override {
        PoolPath::SetUp();
        ::signal(SIGSEGV, SIG_DFL); // whatever a sanitizer would make of it
        std::tie(options.mode, with) = GetParam();
        options.create_bytes = 1_MiB;
        options.engines = {with->engine()};
    }
    pool open_at(const std::string& where) {
        auto opened = pool::open(where, options);
        if (!opened) std::fprintf(stderr, "%s\n", opened.error().what().c_str()), std::abort();
        return std::move(*opened);
    }
    /// A child's life: refused what is its parent's, it runs sections on a pool of its own, which a
    /// grandchild opens after it.
    bool lives(pool& parents) {
        const auto root = parents.find_root<list>();
        if (root || root.error().code() != errc::in_use) return false;
        const std::string own = directory + "/own." + std::to_string(::getpid());
        if (!in_child([&] {
                pool p = open_at(own);
                list* const l = p.root<list>();
                for (std::uint64_t i = 1; i <= 20; ++i) push(l, i);
                const bool refused = dies([&] { push(l, 21); });
                push(l, 21);
                if (!refused || fault(p) != nullptr) return false;
                pool::impl::abandon(std::move(p)); // as a kill leaves it
                return true;
            }))
            return false;
        pool p = open_at(own);
        return fault(p) == nullptr && p.root<list>()->count == 21;
    }
    /// Whether a child that does this is killed, with a line that says why.
    bool dies(const std::function<void()>& body) {
        const std::string said = directory + "/said." + std::to_string(::getpid());
        const pid_t child = ::fork();
        if (child == 0) {
            (void)!::freopen(said.c_str(), "w", stderr);
            ::setvbuf(stderr, nullptr, _IONBF, 0);
            body();
            ::_exit(0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        return WIFSIGNALED(how) &&
               hf::test::contents(said).find("child of the process that has opened the pool") !=
                   std::string::npos;
    }
    /// Runs 'body', on a list of its own, in a process that is killed when it returns true.
    void expect_killed(const std::function<bool(pool&, list*)>& body) {
        const pid_t child = ::fork();
        if (child == 0) {
            pool p = open_at(path);
            ::_exit(body(p, p.root<list>()) ? ::kill(::getpid(), SIGKILL) : 1);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        EXPECT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
    }
    void expect_whole(std::uint64_t count_min, std::uint64_t count_max) {
        pool p = open_at(path);
        const char* const wrong = fault(p);
        EXPECT_EQ(wrong, nullptr) << wrong;
        EXPECT_GE(p.root<list>()->count, count_min);
        EXPECT_LE(p.root<list>()->count, count_max);
        push(p.root<list>(), p.root<list>()->count + 1); // it is in use again
        EXPECT_EQ(fault(p), nullptr);
    }
};

TEST_P(Forked, BetweenSectionsWhoseMarkIsDueNothingIsLost) {
    constexpr std::uint64_t last = 12;
    for (const bool child_exits : {false, true}) {
        expect_killed([&](pool& p, list* l) {
            for (std::uint64_t i = 1; i <= last; ++i) {
                push(l, i);
                const bool right = child_exits
                                       ? in_child([&]() -> bool { std::exit(lives(p) ? 0 : 1); })
                                       : in_child([&] { return lives(p); });
                if (!right) return false;
            }
            return true;
        });
        expect_whole(last, last);
        ::unlink(path.c_str());
    }
}

TEST_P(Forked, WhatAChildLeavesUndoneTheParentStillWaitsFor) {
    if (options.mode == mode::process) return; // no fence there
    pool p = open_at(path);
    list* const l = p.root<list>();
    push(l, 1);
    push(l, 2);
    const auto points = [&] {
        const std::uint64_t before = persist::thread_counters().ordering_points;
        push(l, l->count + 1);
        return persist::thread_counters().ordering_points - before;
    };
    const std::uint64_t usual = points();
    EXPECT_NE(p.internals().lanes[0].mark_due.load(), 0U) << "the next section's fence is theirs";
    EXPECT_TRUE(in_child([&] { return lives(p); }));
    EXPECT_EQ(points(), usual)
        << "the fork is no fence, and the child has taken none from its parent";
}

TEST_P(Forked, InTheMiddleOfAnotherThreadsSectionsNothingIsLost) {
    constexpr int forks = 40;
    expect_killed([&](pool& p, list* l) {
        std::atomic<std::uint64_t> done{0};
        std::thread([&] {
            for (std::uint64_t i = 1;; ++i) push(l, i), done = i;
        }).detach();
        for (int i = 0; i < forks; ++i) {
            while (done.load() == 0) ::sched_yield();
            if (!in_child([&] { return lives(p); })) return false;
        }
        return true; // killed in some section
    });
    expect_whole(forks, ~std::uint64_t{0});
}

TEST_P(Forked, InItsOwnSectionTheChildIsRefusedAllOfIt) {
    expect_killed([&](pool& p, list* l) {
        push(l, 1);
        with->begin(&described, &l);
        push_body(l, 2);
        const std::function<void()> calls[] = {
            [&] {
                // It faults in an atomic store, where ThreadSanitizer would make a deadlock.
                if (under_thread_sanitizer) const_cast<volatile list*>(l)->count = 9;
                else with->commit();
            },
            [] { (void)hf_alloc(32); },
            [&] { hf_free(l->head); },
            [&] { // it would join its parent's
                pool own = open_at(directory + "/own");
                push(own.root<list>(), 1);
            },
        };
        // Drops a copy of what waits; with slow assertions it is refused, as they look at the pool.
        if (with == &redo_calls) (void)in_child([] { return hf_redo_abort(), true; });
        bool all = true;
        for (const auto& call : calls)
            if (!dies(call)) {
                std::fprintf(stderr, "call %td is not refused\n", &call - calls);
                all = false;
            }
        with->commit();
        return all && fault(p) == nullptr && l->count == 2;
    });
    expect_whole(2, 2);
}

// As a thread that ends does, which has sections of two pools in mode power behind it.
TEST(Forks, WaitForWhoHasTheRegistryAndAsksForTheLogs) {
    std::unique_lock has{registry::guard()};
    std::thread forks([] { EXPECT_TRUE(in_child([] { return true; })); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // by then it waits
    const auto asks = std::async(std::launch::async, [] { power::log("none"); });
    EXPECT_EQ(asks.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    has.unlock();
    forks.join();
}

std::string name_of(const ::testing::TestParamInfo<Forked::ParamType>& info) {
    const auto& [in, of] = info.param;
    return std::string(of->name) + (in == mode::process ? "_process" : "_pmem");
}
INSTANTIATE_TEST_SUITE_P(Modes, Forked,
                         ::testing::Combine(::testing::Values(mode::process, mode::pmem),
                                            ::testing::Values(&redo_calls, &undo_calls)),
                         name_of);

} // namespace
