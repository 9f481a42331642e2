// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regression: epochs used twice. A power failure tears a section's begin record off its log; after
// the recovery the lane must never write that begin record again, or what is left of the old log
// follows from it and counts.
#include <log/lane.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/author/staged.hpp>
#include <holdfast/clobber.hpp>
#include <holdfast/txfunc.hpp>

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;

void increment(const void* packed) {
    auto* count = *static_cast<volatile std::uint64_t* const*>(packed);
    hf_clobber_log(const_cast<const std::uint64_t*>(count), 8);
    *count = *count + 1;
}
const hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
const hf_txfunc increment_desc{HF_ABI_VERSION, 8,      1004, 1,        "increment",
                               "here",         schema, 1,    increment};

void begin(std::uint64_t* count) { hf_clobber_begin(&increment_desc, &count); }
void run(std::uint64_t* count) {
    begin(count);
    increment(&count);
    hf_clobber_commit();
}
void run_elsewhere(std::uint64_t* count, int times) {
    std::thread([&] {
        for (int i = 0; i < times; ++i) run(count);
    }).join();
}

class TornTwice : public ::testing::Test {
protected:
    void SetUp() override {
        hf_txfunc_register(&increment_desc);
        ::unlink(path_.c_str());
        options_.layout = "torn_twice_test/1";
        options_.create_bytes = 1_MiB;
        options_.mode = mode::pmem;
        options_.engines = {clobber::engine()};
    }
    void TearDown() override { ::unlink(path_.c_str()); }

    /// Opens the pool in a process that dies with it open, the way 'life' leaves it.
    void live(const std::function<void(pool&)>& life) {
        const pid_t child = ::fork();
        if (child == 0) {
            auto p = pool::open(path_, options_);
            if (!p) ::_exit(2);
            life(*p);
            ::kill(::getpid(), SIGKILL);
        }
        int how = 0;
        ASSERT_EQ(::waitpid(child, &how, 0), child);
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
    }
    /// Takes this thread's lane; it is the pool's first.
    static void take_lane(pool& p) { (void)staged::in(p, 8); }
    /// What a power failure may leave of a section that has logged and stored nothing yet: the
    /// begin record did not become durable, the old bytes did.
    static void tear_begun(pool& p) {
        hf_clobber_begin(&increment_desc, std::array{p.root<std::uint64_t>()}.data());
        hf_clobber_log(p.root<std::uint64_t>(), 8);
        const std::uint64_t epoch = p.internals().lanes[0].epoch;
        std::memset(lane_start(*p.internals().file, 0, epoch).next, 0, sizeof(record_head));
    }
    std::uint64_t count_now() {
        auto p = pool::open(path_, options_);
        EXPECT_TRUE(p) << p.error().what();
        return p ? *p->root<std::uint64_t>() : 0;
    }

    std::string path_ = "/dev/shm/hf_torn_twice_test." + std::to_string(::getpid());
    open_options options_;
};

TEST_F(TornTwice, AfterAReExecutionTheLaneGoesOnAboveEveryEpochItMayHaveUsed) {
    live([](pool& p) {
        run(p.root<std::uint64_t>());
        lane_at(*p.internals().file, 0)->committed = 0; // not flushed, it went with the power
        tear_begun(p);
    });
    live([](pool& p) {
        if (*p.root<std::uint64_t>() != 1 || p.recovered().re_executed != 1) ::_exit(3);
        take_lane(p);
        run_elsewhere(p.root<std::uint64_t>(), 12);
        begin(p.root<std::uint64_t>()); // and the power fails
    });
    EXPECT_GE(count_now(), 13U);
}

TEST_F(TornTwice, WithNothingPendingTheSame) {
    live([](pool& p) { tear_begun(p); });
    live([](pool& p) {
        take_lane(p);
        run_elsewhere(p.root<std::uint64_t>(), 12);
        begin(p.root<std::uint64_t>());
    });
    EXPECT_GE(count_now(), 12U);
}

TEST_F(TornTwice, ThreeTimesRunningTheSame) {
    live([](pool& p) { run(p.root<std::uint64_t>()); });
    for (int round = 0; round < 3; ++round)
        live([](pool& p) {
            take_lane(p);
            run_elsewhere(p.root<std::uint64_t>(), 12);
            tear_begun(p);
        });
    live([](pool& p) {
        take_lane(p);
        run_elsewhere(p.root<std::uint64_t>(), 12);
        begin(p.root<std::uint64_t>());
    });
    EXPECT_GE(count_now(), 49U);
}

} // namespace
