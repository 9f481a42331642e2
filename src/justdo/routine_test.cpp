// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: what the library interface refuses, it refuses in words, and what a stopped routine has promised is there
// after the next open. Method: misuse in a child; routines stopped by a jump out of their thread. The
// crash program 'routine' fails the same interface at every event.
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/justdo.hpp>
#include <holdfast/justdo/routine.hpp>
#include <holdfast/persist.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;
using justdo::object;
using justdo::by_hand::at_point;
using justdo::by_hand::point;

struct counter {
    hf::mutex lock;
    std::uint64_t value;
    std::uint64_t wide[8];
    std::uint8_t small;
    std::uint32_t medium;
};

/// Adds 1 'times' times, and fills and copies besides.
struct count_up {
    static constexpr const char* name = "count_up";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        counter* at;
        std::uint64_t times;
    };
    struct locals {
        std::uint64_t i;
    };
    struct returns {
        std::uint64_t value;
    };
    static void run(object& jd, const arguments& given, const locals& my, returns& out) {
        counter& c = *given.at;
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(c.lock));
        for (; my.i < given.times;) {
            HF_JUSTDO_STEP(store(&c.value, c.value + 1));
            point("count_up", 1);
            HF_JUSTDO_STEP(set(my.i, my.i + 1));
            point("count_up", 2);
        }
        HF_JUSTDO_STEP(fill(c.wide, 0x11, sizeof c.wide));
        point("count_up", 3);
        HF_JUSTDO_STEP(store(&c.wide[0], my.i));
        HF_JUSTDO_STEP(copy(&c.wide[1], &c.wide[0], 7));
        point("count_up", 4);
        HF_JUSTDO_STEP(store(&c.small, 200));
        HF_JUSTDO_STEP(store(&c.medium, 70000));
        point("count_up", 5);
        HF_JUSTDO_STEP(unlock(c.lock));
        HF_JUSTDO_END;
        out.value = c.value;
    }
};

/// Adds 2 where 'calls' says so, by another routine, and then 1 until the value is 'to'.
struct steps_without_braces {
    static constexpr const char* name = "steps_without_braces";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        counter* at;
        std::uint64_t to;
        bool calls;
    };
    struct added {
        static constexpr const char* name = "steps_without_braces::added";
        static constexpr std::uint64_t version = 1;
        struct arguments {
            counter* at;
        };
        struct locals {};
        struct returns {};
        static void run(object& jd, const arguments& given, const locals&, returns&) {
            HF_JUSTDO_BEGIN(jd);
            point("added", 1);
            HF_JUSTDO_STEP(store(&given.at->value, given.at->value + 2));
            HF_JUSTDO_END;
        }
    };
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        counter& c = *given.at;
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(c.lock));
        // Each is one statement.
        if (given.calls) HF_JUSTDO_CALL(jd.call<added>({&c}));
        else HF_JUSTDO_STEP(store(&c.small, 1));
        while (point("steps_without_braces", 1), c.value < given.to)
            HF_JUSTDO_STEP(store(&c.value, c.value + 1));
        HF_JUSTDO_STEP(unlock(c.lock));
        HF_JUSTDO_END;
    }
};

struct steps_outside {
    static constexpr const char* name = "steps_outside";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        counter* at;
    };
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.at->lock));
        jd.store(&given.at->value, 1);
        HF_JUSTDO_END;
    }
};

struct sets_the_pool {
    static constexpr const char* name = "sets_the_pool";
    static constexpr std::uint64_t version = 1;
    using arguments = steps_outside::arguments;
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.at->lock));
        HF_JUSTDO_STEP(set(given.at->value, 1));
        HF_JUSTDO_END;
    }
};

struct leaves_it_locked {
    static constexpr const char* name = "leaves_it_locked";
    static constexpr std::uint64_t version = 1;
    using arguments = steps_outside::arguments;
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.at->lock));
        HF_JUSTDO_END;
    }
};

struct stores_elsewhere {
    static constexpr const char* name = "stores_elsewhere";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        counter* at;
        std::uint64_t* transient;
    };
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.at->lock));
        HF_JUSTDO_STEP(store(given.transient, 1));
        HF_JUSTDO_STEP(unlock(given.at->lock));
        HF_JUSTDO_END;
    }
};

/// What count_up() leaves there.
void expect_wide(const counter* c, std::uint64_t times) {
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(c->wide[i], i < 2 ? times : 0x1111111111111111U) << i;
}

class Routine : public ::testing::TestWithParam<mode> {
protected:
    ~Routine() override { ::unlink(path_.c_str()); }
    result<pool> try_open(std::vector<const engine*> engines = {justdo::engine()}) {
        open_options o;
        o.layout = "routine_test/1";
        o.create_bytes = 1_MiB;
        o.mode = GetParam();
        o.engines = std::move(engines);
        return pool::open(path_, o);
    }
    pool open() {
        auto p = try_open();
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), std::abort();
        return std::move(*p);
    }
    static object made(pool& p) { return *justdo::root::of(p)->new_object(); }
    const std::string path_ = "/dev/shm/hf_routine_test." + std::to_string(::getpid());
};

TEST_P(Routine, RunsAndReturns) {
    pool p = open();
    auto* const c = p.root<counter>();
    EXPECT_EQ(made(p).call<count_up>({c, 3}).value, 3U);
    expect_wide(c, 3);
    EXPECT_EQ(c->small, 200U);
    EXPECT_EQ(c->medium, 70000U);
}

thread_local std::jmp_buf stopped;
thread_local unsigned points_left;

TEST_P(Routine, StoppedAtAnyPointItIsFinishedByTheNextOpen) {
    std::uint64_t value = 0;
    for (unsigned points = 0, died = 1; died != 0; ++points) {
        pool p = open();
        auto* c = p.root<counter>();
        std::memset(c->wide, 0, sizeof c->wide);
        died = 0;
        std::thread([&] {
            points_left = points;
            at_point = [](const char*, std::uint32_t) {
                if (points_left-- == 0) std::longjmp(stopped, 1);
            };
            object jd = made(p);
            if (setjmp(stopped) == 0) jd.call<count_up>({c, 2});
            else died = 1;
        }).join();
        EXPECT_EQ(died == 0, points == 7);
        if (died != 0) {
            pool::impl::abandon(std::move(p));
            p = open();
            EXPECT_EQ(p.recovered().resumed, 1U);
            c = p.root<counter>();
        }
        EXPECT_EQ(c->value, value += 2) << points;
        expect_wide(c, 2);
    }
}

TEST_P(Routine, StepsAndCallsAreStatementsOfLoopsAndBranches) {
    for (const bool calls : {false, true})
        for (unsigned points = 0, died = 1; died != 0; ++points) {
            pool p = open();
            auto* c = p.root<counter>();
            c->value = 10, c->small = 0;
            died = 0;
            std::thread([&] {
                points_left = points;
                at_point = [](const char*, std::uint32_t) {
                    if (points_left-- == 0) std::longjmp(stopped, 1);
                };
                object jd = made(p);
                if (setjmp(stopped) == 0) jd.call<steps_without_braces>({c, 14, calls});
                else died = 1;
            }).join();
            EXPECT_EQ(died == 0, points == (calls ? 4 : 5));
            if (died != 0) {
                pool::impl::abandon(std::move(p));
                p = open();
                c = p.root<counter>();
            }
            EXPECT_EQ(c->value, 14U) << points;
            EXPECT_EQ(c->small, calls ? 0U : 1U);
        }
}

TEST_P(Routine, APoolWithoutTheEngineIsRefusedInWords) {
    auto p = try_open({});
    ASSERT_TRUE(p);
    const auto root = justdo::root::of(*p);
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().code(), errc::missing_engine);
    EXPECT_NE(root.error().what().find("hf::justdo::engine()"), std::string::npos);
}

TEST_P(Routine, BrokenRulesEndTheProcessInWords) {
    std::uint64_t transient = 0;
    const auto in_child = [&]<class R>(R,
                                       auto... more) { // a pool of the parent's is none of its own
        ::unlink(path_.c_str());                       // the one before left its section open
        pool p = open();
        made(p).call<R>({p.root<counter>(), more...});
    };
    EXPECT_DEATH(in_child(steps_outside{}),
                 "routine steps_outside makes a step outside of HF_JUSTDO_STEP");
    EXPECT_DEATH(in_child(sets_the_pool{}),
                 "routine sets_the_pool sets what is none of its locals");
    EXPECT_DEATH(in_child(leaves_it_locked{}), "a lock is still held");
    EXPECT_DEATH(in_child(stores_elsewhere{}, &transient), "is not in pool .*stores_elsewhere");
}

INSTANTIATE_TEST_SUITE_P(Modes, Routine, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) {
                             return which.param == mode::process ? "process" : "pmem";
                         });

} // namespace
