// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: sections that resume are refused for waiting for each other only when they do. Method:
// three in a row, each with the lock that the one before it waits for. The second one gets no
// processor while the others have long been through: the test's own sched_yield() takes it away.
#include <justdo/inspect.hpp>
#include <justdo/test_support.hpp>
#include <justdo/thread.hpp>
#include <open/pool_impl.hpp>

#include <holdfast/justdo.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using namespace hf;
using namespace hf::justdo::by_hand;

constexpr unsigned asked_by_others = 300'000; // more than any that look for a deadlock wait
std::uint64_t held_up = 0;                    // the block of the thread that is
std::atomic<unsigned> asked{0};
std::atomic<bool> busy{false}; // other programs want the processor: it comes back late

struct root {
    account accounts[4];
};

thread_local std::jmp_buf stopped;

} // namespace

extern "C" int sched_yield() noexcept {
    using std::chrono::steady_clock;
    const bool held = justdo::current != nullptr && justdo::current->offset() == held_up;
    if (!held) ++asked;
    if (busy) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto late = steady_clock::now() + std::chrono::seconds(5);
    while (held && asked < asked_by_others && steady_clock::now() < late)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
}

namespace {

extern const hf_justdo_function cross_function;
struct cross_frame {
    account* first;
    account* second;
};
/// Takes the locks in the given order.
void cross(account* first, account* second) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<cross_frame*>(hf_justdo_enter(&cross_function, first, &resumed));
    switch (resumed) {
    case 0:
        f = {first, second};
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f.first->lock, HF_JUSTDO_EXCLUSIVE, 1);
        [[fallthrough]];
    case 1:
        point("cross", 1);
        hf_justdo_lock(&f.second->lock, HF_JUSTDO_EXCLUSIVE, 2);
        [[fallthrough]];
    case 2: hf_justdo_unlock(&f.second->lock, HF_JUSTDO_EXCLUSIVE, 3); [[fallthrough]];
    case 3: hf_justdo_unlock(&f.first->lock, HF_JUSTDO_EXCLUSIVE, 4);
    }
    hf_justdo_leave();
}
const hf_justdo_function cross_function{HF_ABI_VERSION,
                                        sizeof(cross_frame),
                                        5201,
                                        1,
                                        "cross",
                                        "waiting_test",
                                        4,
                                        0,
                                        [] { cross(nullptr, nullptr); },
                                        nullptr};
[[maybe_unused]] const bool registered = (hf_justdo_register(&cross_function), true);

class Waiting : public ::testing::Test {
protected:
    ~Waiting() override { ::unlink(path_.c_str()); }
    result<pool> open() const {
        open_options o;
        o.layout = "waiting_test/1";
        o.create_bytes = 1_MiB;
        o.engines = {justdo::engine({.open_waits = true})};
        return pool::open(path_, o);
    }
    /// Runs the section on a thread that dies at its first point.
    template <class Section> static void dies(Section&& section) {
        std::thread([&] {
            at_point = [](const char*, std::uint32_t) { std::longjmp(stopped, 1); };
            if (setjmp(stopped) == 0) section();
        }).join();
    }
    const std::string path_ = "/dev/shm/hf_waiting_test." + std::to_string(::getpid());
};

TEST_F(Waiting, OneThatHasNoProcessorIsNoDeadlock) {
    auto made = open();
    ASSERT_TRUE(made) << made.error().what();
    pool p = std::move(*made);
    auto& a = p.root<root>()->accounts;
    for (unsigned i = 3; i-- > 0;) dies([&] { transfer(&a[i], &a[i + 1], 1); });
    held_up = justdo::thread_words(*justdo::superblock_of(*p.internals().file))[1];
    pool::impl::abandon(std::move(p));
    auto again = open();
    held_up = 0;
    ASSERT_TRUE(again) << again.error().what();
    EXPECT_EQ(again->recovered().resumed, 3U);
    EXPECT_EQ(again->root<root>()->accounts[3].balance, 1U);
}

TEST_F(Waiting, ADeadlockIsRefusedInWordsAndSoon) {
    auto made = open();
    ASSERT_TRUE(made) << made.error().what();
    pool p = std::move(*made);
    auto& a = p.root<root>()->accounts;
    for (unsigned i = 0; i < 2; ++i) dies([&] { cross(&a[i], &a[1 - i]); });
    dies([&] { transfer(&a[2], &a[3], 1); }); // the third one ends
    pool::impl::abandon(std::move(p));
    asked = 0, busy = true;
    const auto again = open();
    busy = false;
    ASSERT_FALSE(again);
    EXPECT_LT(asked, 5'000U);
    EXPECT_EQ(again.error().code(), errc::corrupt);
    EXPECT_NE(again.error().what().find("wait for each other's locks for ever"), std::string::npos);
}

} // namespace
