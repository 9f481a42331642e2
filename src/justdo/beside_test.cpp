// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: open returns when the sections that it resumes hold their locks again, and they go on
// beside new work, whatever happens then. Method: sections stop at a gate that the test opens after
// open has returned; a kill is a pool that is let go of, or a child that kills itself.
#include <base/log.hpp>
#include <justdo/test_support.hpp>
#include <open/pool_impl.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/justdo.hpp>
#include <holdfast/undo.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::justdo::by_hand;

struct root {
    account accounts[6];
};

// A section of four steps. In its resumed run it stops behind step 'gate_at' until the gate is
// open.
std::atomic<std::uint32_t> gate_at{0};
std::atomic<bool> gate_open{false};
std::atomic<bool> at_gate{false};
std::atomic<bool> ended{false};
std::atomic<void (*)()> at_the_gate{nullptr}; // called there
thread_local bool first_run = false;

void gate(std::uint32_t step) {
    if (first_run || step != gate_at) return;
    at_gate = true;
    at_gate.notify_all();
    if (const auto call = at_the_gate.load()) call();
    gate_open.wait(false);
}

extern const hf_justdo_function linger_function;
struct linger_frame {
    account* on;
    std::uint64_t kind; // of its lock
};
/// Adds 1, 10, 100 and 1000 to the account.
void linger(account* on, std::uint32_t kind) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<linger_frame*>(hf_justdo_enter(&linger_function, on, &resumed));
    const auto lock_kind = [&] { return static_cast<std::uint32_t>(f.kind); };
    const auto add = [&](std::uint64_t amount, std::uint32_t next) {
        hf_justdo_store(&f.on->balance, f.on->balance + amount, 8, next);
        point("linger", next - 1);
        gate(next - 1);
    };
    switch (resumed) {
    case 0:
        f = {on, kind};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.on->lock, lock_kind(), 1);
        point("linger", 0);
        [[fallthrough]];
    case 1: add(1, 2); [[fallthrough]];
    case 2: add(10, 3); [[fallthrough]];
    case 3: add(100, 4); [[fallthrough]];
    case 4:
        add(1000, 5);
        if (!first_run) ended = true;
        [[fallthrough]];
    case 5: hf_justdo_unlock(&f.on->lock, lock_kind(), 6);
    }
    hf_justdo_leave();
}
const hf_justdo_function linger_function{HF_ABI_VERSION,
                                         sizeof(linger_frame),
                                         5301,
                                         1,
                                         "linger",
                                         "beside_test",
                                         6,
                                         0,
                                         [] { linger(nullptr, 0); },
                                         nullptr};

extern const hf_justdo_function late_function;
struct late_frame {
    account* first;
    account* second;
};
/// Begins without a lock, takes one later, and adds 1 to the account; then once more without it.
void late(account* on) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<late_frame*>(hf_justdo_enter(&late_function, on, &resumed));
    switch (resumed) {
    case 0:
        f = {on, nullptr};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(nullptr, HF_JUSTDO_NO_LOCK, 1);
        point("late", 1);
        [[fallthrough]];
    case 1:
        hf_justdo_lock(&f.first->lock, HF_JUSTDO_EXCLUSIVE, 2);
        point("late", 2);
        [[fallthrough]];
    case 2: hf_justdo_store(&f.first->balance, f.first->balance + 1, 8, 3); [[fallthrough]];
    case 3: hf_justdo_unlock(&f.first->lock, HF_JUSTDO_EXCLUSIVE, 4); [[fallthrough]];
    case 4:
        if (!first_run)
            std::this_thread::sleep_for(std::chrono::milliseconds(5)); // others may come
        hf_justdo_store(&f.first->balance, f.first->balance + 1, 8, 5);
        [[fallthrough]];
    case 5: hf_justdo_unlock(nullptr, HF_JUSTDO_NO_LOCK, 6);
    }
    hf_justdo_leave();
}
const hf_justdo_function late_function{
    HF_ABI_VERSION, sizeof(late_frame), 5302, 1, "late", "beside_test", 6, 0, [] { late(nullptr); },
    nullptr};

extern const hf_justdo_function chain_function;
/// Takes the second lock behind the gate, and adds 1 to both accounts.
void chain(account* first, account* second) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<late_frame*>(hf_justdo_enter(&chain_function, first, &resumed));
    switch (resumed) {
    case 0:
        f = {first, second};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.first->lock, HF_JUSTDO_EXCLUSIVE, 1);
        point("chain", 1);
        [[fallthrough]];
    case 1:
        gate(1);
        hf_justdo_lock(&f.second->lock, HF_JUSTDO_EXCLUSIVE, 2);
        [[fallthrough]];
    case 2: hf_justdo_store(&f.first->balance, f.first->balance + 1, 8, 3); [[fallthrough]];
    case 3: hf_justdo_store(&f.second->balance, f.second->balance + 1, 8, 4); [[fallthrough]];
    case 4:
        gate(4);
        hf_justdo_unlock(&f.second->lock, HF_JUSTDO_EXCLUSIVE, 5);
        [[fallthrough]];
    case 5: hf_justdo_unlock(&f.first->lock, HF_JUSTDO_EXCLUSIVE, 6);
    }
    hf_justdo_leave();
}
const hf_justdo_function chain_function{HF_ABI_VERSION,
                                        sizeof(late_frame),
                                        5303,
                                        1,
                                        "chain",
                                        "beside_test",
                                        6,
                                        0,
                                        [] { chain(nullptr, nullptr); },
                                        nullptr};
[[maybe_unused]] const bool registered =
    (hf_justdo_register(&linger_function), hf_justdo_register(&late_function),
     hf_justdo_register(&chain_function), true);

thread_local std::jmp_buf stopped;
thread_local std::uint32_t points_left;

class Beside : public ::testing::TestWithParam<mode> {
protected:
    void SetUp() override { set_gate(0); }
    ~Beside() override { ::unlink(path_.c_str()); }
    static void set_gate(std::uint32_t at, void (*call)() = nullptr) {
        gate_at = at;
        gate_open = at_gate = ended = false;
        at_the_gate = call;
    }
    static void open_gate() {
        gate_open = true;
        gate_open.notify_all();
    }
    result<pool> try_open(const justdo::options& how = {}, bool salvage = false) {
        open_options o;
        o.layout = "beside_test/1";
        o.create_bytes = 1_MiB;
        o.max_bytes = 16_MiB;
        o.mode = GetParam();
        o.engines = {justdo::engine(how), undo::engine()};
        o.salvage = salvage;
        return pool::open(path_, o);
    }
    pool open() {
        auto p = try_open();
        if (!p) std::fprintf(stderr, "%s\n", p.error().what().c_str()), ::_exit(1);
        return std::move(*p);
    }
    /// Runs the section on a thread that dies at its point number 'points'.
    static void dies_at(std::uint32_t points, const std::function<void()>& section) {
        std::thread([&] {
            first_run = true;
            points_left = points;
            at_point = [](const char*, std::uint32_t) {
                if (points_left-- == 0) std::longjmp(stopped, 1);
            };
            if (setjmp(stopped) == 0) section();
        }).join();
    }
    /// A section in account 0's lock is cut short behind its lock, and the process with it.
    void leave_lingering(std::uint32_t kind = HF_JUSTDO_EXCLUSIVE) {
        pool p = open();
        auto& a = p.root<root>()->accounts;
        for (account& each : a) each.balance = 0;
        dies_at(0, [&] { linger(&a[0], kind); });
        pool::impl::abandon(std::move(p));
    }
    /// The exit status of a child that runs this; it has no part in the test's pools.
    template <class Work> static int in_child(Work&& work) {
        const pid_t child = ::fork();
        if (child == 0) {
            work();
            ::_exit(HasFailure() ? 1 : 0);
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        return how;
    }
    const std::string path_ = "/dev/shm/hf_beside_test." + std::to_string(::getpid());
};

TEST_P(Beside, OpenReturnsWhileASectionHasWorkLeftAndNewWorkWaitsAtItsLock) {
    leave_lingering();
    set_gate(2);
    pool p = open(); // or it would wait for ever
    at_gate.wait(false);
    auto& a = p.root<root>()->accounts;
    EXPECT_EQ(p.recovered().resumed, 1U);
    EXPECT_FALSE(a[0].lock.try_lock());
    transfer(&a[1], &a[2], 5); // at other locks, new work goes on
    EXPECT_EQ(a[2].balance, 5U);
    bool had_ended = false;
    std::thread waits([&] {
        a[0].lock.lock();
        had_ended = ended && a[0].balance == 1111;
        a[0].lock.unlock();
        transfer(&a[0], &a[3], 11);
    });
    open_gate();
    waits.join();
    EXPECT_TRUE(had_ended);
    justdo::wait(p);
    EXPECT_EQ(a[0].balance, 1100U);
    EXPECT_EQ(a[3].balance, 11U);
}

TEST_P(Beside, ItHoldsItsLockFromBeforeOpenReturnsOn) {
    for (int i = 0; i < 20; ++i) {
        leave_lingering();
        set_gate(1);
        pool p = open();
        EXPECT_FALSE(p.root<root>()->accounts[0].lock.try_lock());
        open_gate();
    }
}

TEST_P(Beside, ClosingWaitsForIt) {
    leave_lingering();
    set_gate(3);
    {
        pool p = open();
        at_gate.wait(false);
        std::thread([] { open_gate(); }).detach();
    }
    EXPECT_TRUE(ended);
    const pool p = open();
    EXPECT_EQ(p.recovered().sections_pending, 0U);
}

TEST_P(Beside, KilledAtEachOfItsStepsItGoesOnInTheNextOpen) {
    for (std::uint32_t step = 1; step <= 4; ++step) {
        leave_lingering();
        set_gate(step, [] { ::raise(SIGKILL); });
        const int how = in_child([&] {
            pool p = open();
            transfer(&p.root<root>()->accounts[1], &p.root<root>()->accounts[2], 5);
            justdo::wait(p);
        });
        ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
        set_gate(4, [] { ::raise(SIGKILL); }); // and once more
        const int again = in_child([&] {
            pool p = open();
            justdo::wait(p);
        });
        EXPECT_EQ(WIFSIGNALED(again), step != 4) << again; // else it has passed that
        set_gate(0);
        pool p = open();
        EXPECT_EQ(p.recovered().resumed, step == 4 ? 0U : 1U);
        justdo::wait(p);
        EXPECT_EQ(p.root<root>()->accounts[0].balance, 1111U) << step;
    }
}

TEST_P(Beside, NewWorkThatIsCutShortBesideItIsResumedWithIt) {
    leave_lingering();
    set_gate(2);
    {
        pool p = open();
        at_gate.wait(false);
        auto& a = p.root<root>()->accounts;
        a[1].balance = 100;
        dies_at(2, [&] { transfer(&a[1], &a[2], 7); });
        open_gate();
        pool::impl::abandon(std::move(p)); // it stops at one of its next steps
    }
    set_gate(0);
    pool p = open();
    justdo::wait(p);
    auto& a = p.root<root>()->accounts;
    EXPECT_EQ(a[0].balance, 1111U);
    EXPECT_EQ(a[1].balance, 93U);
    EXPECT_EQ(a[2].balance, 7U);
}

/// A section of engine undo, in which the process dies.
[[noreturn]] void dies_half_done(account* on) {
    static constexpr hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
    static constexpr hf_txfunc half{
        HF_ABI_VERSION, 8, 5304, 1, "half_done", "beside_test", schema, 1, [](const void*) {}};
    hf_undo_begin(&half, &on);
    hf_undo_log(&on->balance, sizeof on->balance);
    *const_cast<volatile std::uint64_t*>(&on->balance) = 77;
    ::raise(SIGKILL);
    std::abort();
}

TEST_P(Beside, SectionsOfOtherEnginesHaveEndedBeforeItGoesOn) {
    { const pool made = open(); }
    const int how = in_child([&] {
        pool p = open();
        auto& a = p.root<root>()->accounts;
        dies_at(0, [&] { linger(&a[0], HF_JUSTDO_EXCLUSIVE); });
        dies_half_done(&a[5]);
    });
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << how;
    set_gate(1);
    pool p = open();
    at_gate.wait(false);
    EXPECT_EQ(p.recovered().resumed, 1U);
    EXPECT_EQ(p.recovered().rolled_back, 1U);
    EXPECT_EQ(p.root<root>()->accounts[5].balance, 0U);
    open_gate();
    justdo::wait(p);
    EXPECT_EQ(p.root<root>()->accounts[0].balance, 1111U);
}

TEST_P(Beside, OneThatWaitsForAnothersLockDoesNotHoldOpen) {
    pool p = open();
    auto* a = p.root<root>()->accounts;
    a[1].balance = 100;
    dies_at(0, [&] { transfer(&a[0], &a[1], 0); }); // has the first lock, wants the second
    dies_at(0, [&] { linger(&a[1], HF_JUSTDO_EXCLUSIVE); });
    pool::impl::abandon(std::move(p));
    set_gate(2);
    p = open();
    EXPECT_EQ(p.recovered().resumed, 2U);
    a = p.root<root>()->accounts;
    at_gate.wait(false);
    EXPECT_FALSE(a[0].lock.try_lock());
    EXPECT_FALSE(a[1].lock.try_lock());
    open_gate();
    justdo::wait(p);
    EXPECT_EQ(a[1].balance, 1211U);
}

/// It waits for a lock that another resumed section has, and works in no lock behind that.
TEST_P(Beside, ASectionThatBeganWithoutALockHasEndedWhenOpenReturns) {
    for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t points = i % 2; // before it has the lock, and with it
        pool p = open();
        auto* a = p.root<root>()->accounts;
        a[0].balance = a[1].balance = 0;
        dies_at(points, [&] { late(&a[1]); });
        if (points == 0) dies_at(0, [&] { linger(&a[1], HF_JUSTDO_EXCLUSIVE); });
        pool::impl::abandon(std::move(p));
        set_gate(0);
        p = open();
        a = p.root<root>()->accounts;
        EXPECT_TRUE(a[1].lock.try_lock());
        EXPECT_EQ(a[1].balance, points == 0 ? 1113U : 2U) << points;
        a[1].lock.unlock();
    }
}

TEST_P(Beside, ASectionWithoutALockHasEndedWhenOpenReturns) {
    for (int i = 0; i < 20; ++i) {
        leave_lingering(HF_JUSTDO_NO_LOCK);
        set_gate(0);
        const pool p = open();
        EXPECT_TRUE(ended);
    }
}

TEST_P(Beside, OpenThatIsAskedToWaitsForAll) {
    leave_lingering();
    auto p = try_open({.open_waits = true});
    ASSERT_TRUE(p);
    EXPECT_TRUE(ended);
    EXPECT_TRUE(p->root<root>()->accounts[0].lock.try_lock());
    p->root<root>()->accounts[0].lock.unlock();
}

TEST_P(Beside, AChildOfForkHasNoPartInIt) {
    leave_lingering();
    set_gate(2);
    pool p = open();
    at_gate.wait(false);
    EXPECT_EQ(in_child([&] {
                  pool forgotten = std::move(p); // closing it waits for nobody there
              }),
              0);
    EXPECT_TRUE(WIFSIGNALED(in_child([&] {
        set_log([](void*, severity, const char*) {});
        justdo::wait(p);
    })));
    open_gate();
    justdo::wait(p);
    EXPECT_EQ(p.root<root>()->accounts[0].balance, 1111U);
}

void faults() { ::raise(SIGABRT); }

TEST_P(Beside, AFaultInItEndsTheProcessInWordsThatNameTheWayOut) {
    leave_lingering();
    set_gate(2, faults);
    int said[2];
    ASSERT_EQ(::pipe(said), 0);
    const int how = in_child([&] {
        ::dup2(said[1], STDERR_FILENO);
        pool p = open();
        justdo::wait(p);
    });
    EXPECT_TRUE(WIFSIGNALED(how)) << how;
    char words[2048] = {};
    EXPECT_GT(::read(said[0], words, sizeof words - 1), 0);
    ::close(said[0]), ::close(said[1]);
    for (const char* part : {"resuming linger (beside_test): expected it to return, found SIGABRT",
                             "stays marked open", "holdfast repair --roll-back --force"})
        EXPECT_NE(std::string(words).find(part), std::string::npos) << words;
}

TEST_P(Beside, AFaultIsRefusedWhereOpenWaits) {
    leave_lingering();
    set_gate(2, faults);
    const auto refused = try_open({.open_waits = true});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().what().find("resuming linger"), std::string::npos);
    set_gate(0);
    pool p = open();
    justdo::wait(p);
    EXPECT_EQ(p.root<root>()->accounts[0].balance, 1111U);
}

constexpr std::uint32_t time_of_resumed_ms = 100;

/// In the first such time it has reached something new; in the second it has not, and the next step
/// stops it; behind the third it would be stopped anywhere.
void compute_too_long() {
    const auto own_ms = [] {
        timespec t{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
    };
    constexpr auto end = time_of_resumed_ms * 5 / 2;
    while (own_ms() < end) {}
}

std::atomic<bool> computes_at_a_fence{false};

/// A fence of the unlock behind the gate: its own check for time is over.
void at_event(const trace::event& what, const void*, std::size_t) {
    if (what == trace::fence && computes_at_a_fence.exchange(false)) compute_too_long();
}

class BesideWithFences : public Beside {};

TEST_P(BesideWithFences, SalvageFreesTheLockThatASectionWasAboutToUnlock) {
    {
        pool p = open();
        auto& a = p.root<root>()->accounts;
        dies_at(0, [&] { chain(&a[0], &a[1]); });
        pool::impl::abandon(std::move(p));
    }
    set_gate(4, [] { computes_at_a_fence = gate_open = true; });
    const trace::listening here(at_event);
    auto salvaged = try_open({.recovery_ms_max = time_of_resumed_ms}, true);
    ASSERT_TRUE(salvaged) << salvaged.error().what();
    ASSERT_FALSE(salvaged->warnings().empty());
    EXPECT_NE(salvaged->warnings().back().find("reach something new"), std::string::npos)
        << salvaged->warnings().back();
    for (account& each : salvaged->root<root>()->accounts) {
        ASSERT_TRUE(each.lock.try_lock());
        each.lock.unlock();
    }
}

/// A thread that has ended in a section keeps the section's locks: nobody lets go of them.
TEST_P(Beside, ClosingDoesNotWaitForALockThatNobodyLetsGoOf) {
    {
        pool p = open();
        auto& a = p.root<root>()->accounts;
        dies_at(0, [&] { chain(&a[0], &a[1]); });
        pool::impl::abandon(std::move(p));
    }
    set_log([](void*, severity, const char*) {});
    set_gate(1);
    {
        pool p = open();
        at_gate.wait(false);
        auto& a = p.root<root>()->accounts;
        dies_at(0, [&] { linger(&a[1], HF_JUSTDO_EXCLUSIVE); });
        open_gate();
    } // stays marked open
    set_log(nullptr);
    set_gate(0);
    pool p = open();
    EXPECT_EQ(p.recovered().resumed, 2U);
    justdo::wait(p);
    EXPECT_EQ(p.root<root>()->accounts[0].balance, 1U);
    EXPECT_EQ(p.root<root>()->accounts[1].balance, 1112U);
}

/// Adds 1 to the account.
void adds_one_by_undo(account* on) {
    static constexpr hf_arg schema[] = {{0, 8, HF_ARG_POOL_POINTER}};
    static constexpr hf_txfunc one{HF_ABI_VERSION,    8, 5305, 1, "one", "beside_test", schema, 1,
                                   [](const void*) {}};
    hf_undo_begin(&one, &on);
    hf_undo_log(&on->balance, sizeof on->balance);
    *const_cast<volatile std::uint64_t*>(&on->balance) += 1;
    hf_undo_commit();
}

TEST_P(Beside, GuardedMarksLetAFunctionSaveItsFrameInThePool) {
    EXPECT_EQ(in_child([&] {
                  ::setenv("HOLDFAST_GUARD", "1", 1);
                  first_run = true;
                  pool p = open();
                  auto& a = p.root<root>()->accounts;
                  linger(&a[1], HF_JUSTDO_EXCLUSIVE); // the thread has its log now
                  adds_one_by_undo(&a[0]);            // from its end on the pool is read-only
                  linger(&a[0], HF_JUSTDO_EXCLUSIVE);
                  EXPECT_EQ(a[0].balance, 1112U);
              }),
              0);
}

INSTANTIATE_TEST_SUITE_P(Modes, BesideWithFences, ::testing::Values(mode::pmem));
INSTANTIATE_TEST_SUITE_P(Modes, Beside, ::testing::Values(mode::process, mode::pmem),
                         [](const auto& which) {
                             return which.param == mode::process ? "process" : "pmem";
                         });

} // namespace
