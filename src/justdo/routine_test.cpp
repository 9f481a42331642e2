// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: the library interface refuses misuse with a message, and the promises of a stopped routine
// hold after the next open. Method: misuse in a child; routines stopped by a jump out of their
// thread. The crash program 'routine' fails the same interface at every event.
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/author/justdo/routine.hpp>
#include <holdfast/author/persist.hpp>
#include <holdfast/justdo.hpp>
#include <holdfast/undo.hpp>

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

/// If 'calls' says so adds 2, by another routine, and then 1 until the value is 'to'.
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

/// As the plugin would instrument it.
void add_undone(counter* to) {
    static constexpr hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
    static constexpr hf_txfunc adding{HF_ABI_VERSION, 8,      5101, 1,      "add_undone",
                                      "routine_test", schema, 1,    nullptr};
    hf_undo_begin(&adding, &to);
    hf_undo_log(&to->value, sizeof to->value);
    to->value += 1;
    hf_undo_commit();
}

/// A section of another engine may stand before the first lock and behind the last unlock.
struct adds_undone {
    static constexpr const char* name = "adds_undone";
    static constexpr std::uint64_t version = 1;
    struct arguments {
        counter* at;
        std::uint64_t inside;
    };
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        if (given.inside == 0) add_undone(given.at);
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(given.at->lock));
        if (given.inside == 1) {
            add_undone(given.at);
            point("adds_undone", 1);
        }
        HF_JUSTDO_STEP(store(&given.at->small, 1));
        HF_JUSTDO_STEP(unlock(given.at->lock));
        HF_JUSTDO_END;
        if (given.inside == 0) add_undone(given.at);
    }
};

struct begins_without_a_lock {
    static constexpr const char* name = "begins_without_a_lock";
    static constexpr std::uint64_t version = 1;
    using arguments = steps_outside::arguments;
    struct locals {};
    struct returns {};
    static void run(object& jd, const arguments& given, const locals&, returns&) {
        HF_JUSTDO_BEGIN(jd);
        HF_JUSTDO_STEP(lock(nullptr, HF_JUSTDO_NO_LOCK));
        HF_JUSTDO_STEP(store(&given.at->value, given.at->value + 1));
        HF_JUSTDO_STEP(unlock(nullptr, HF_JUSTDO_NO_LOCK));
        HF_JUSTDO_END;
    }
};

/// The counter's contents after count_up().
void expect_wide(const counter* c, std::uint64_t times) {
    for (unsigned i = 0; i < 8; ++i)
        EXPECT_EQ(c->wide[i], i < 2 ? times : 0x1111111111111111U) << i;
}

class Routine : public ::testing::TestWithParam<mode> {
protected:
    ~Routine() override { ::unlink(path_.c_str()); }
    result<pool> try_open(std::vector<engine_ptr> engines = {
                              justdo::engine({.open_waits = true})}) {
        open_options o;
        o.layout = "routine_test/1";
        o.create_bytes = 1_MiB;
        o.mode = GetParam();
        o.engines = std::move(engines);
        return pool::open(path_, o);
    }
    pool open() {
        auto p = try_open();
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), ::_exit(1);
        return std::move(*p);
    }
    static object made(pool& p) { return *justdo::root::in(p)->new_object(); }
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
    const auto p = try_open({undo::engine()});
    ASSERT_FALSE(p);
    EXPECT_EQ(p.error().code(), errc::bad_argument);
    EXPECT_NE(p.error().what().find("expected justdo"), std::string::npos) << p.error().what();
    EXPECT_TRUE(try_open({})); // the program's
}

// It would happen, and be made again when the section is resumed: the value would be one more than
// it should.
TEST_P(Routine, ASectionOfAnotherEngineInsideEndsTheProcessInWords) {
    const std::vector<engine_ptr> both{justdo::engine(), undo::engine()};
    const auto opened = [&] { return std::move(*try_open(both)); };
    const auto in_child = [&] {
        pool p = opened();
        made(p).call<adds_undone>({p.root<counter>(), 1});
    };
    EXPECT_DEATH(in_child(), "add_undone .*engine undo.*section of engine justdo is open");
    ::unlink(path_.c_str()); // it is open there
    const auto the_other_way = [&] {
        pool p = opened();
        static constexpr hf_txfunc around{HF_ABI_VERSION, 0,       5102, 1,      "around",
                                          "routine_test", nullptr, 0,    nullptr};
        object jd = made(p);
        hf_undo_begin(&around, nullptr);
        jd.call<begins_without_a_lock>({p.root<counter>()});
    };
    EXPECT_DEATH(the_other_way(), "begins_without_a_lock .*in a section of engine undo, around");
    ::unlink(path_.c_str());
    pool p = opened();
    made(p).call<adds_undone>({p.root<counter>(), 0});
    EXPECT_EQ(p.root<counter>()->value, 2U);
}

TEST_P(Routine, BrokenRulesEndTheProcessInWords) {
    std::uint64_t transient = 0;
    const auto in_child = [&]<class R>(R,
                                       auto... more) { // a pool of the parent's would be useless
        ::unlink(path_.c_str());                       // the one before left its section open
        pool p = open();
        made(p).call<R>({p.root<counter>(), more...});
    };
    EXPECT_DEATH(in_child(steps_outside{}),
                 "routine steps_outside makes a step outside of HF_JUSTDO_STEP");
    EXPECT_DEATH(in_child(sets_the_pool{}),
                 "routine sets_the_pool sets an object that is not one of its locals");
    EXPECT_DEATH(in_child(leaves_it_locked{}), "a lock is still held");
    EXPECT_DEATH(in_child(stores_elsewhere{}, &transient), "is not in pool .*stores_elsewhere");
}

INSTANTIATE_TEST_SUITE_P(Modes, Routine, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) {
                             return which.param == mode::process ? "process" : "pmem";
                         });

} // namespace
