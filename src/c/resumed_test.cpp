// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goal: hf_pool_wait_resumed waits for sections that wait for new work. Method: a section whose
// process has died goes on while another thread holds the lock that it takes next.
#include <holdfast/abi/justdo_abi.h>
#include <holdfast/holdfast.h>
#include <holdfast/lock.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

struct root {
    hf::mutex first, second;
    std::uint64_t sum;
};

bool dies = false;
std::atomic<bool> gate_open{false}; // where it goes on

extern const hf_justdo_function add_function;
/// Adds 1, with both locks. The process may die when it has the first.
void add(root* to) {
    std::uint32_t resumed = 0;
    auto& f = *static_cast<root**>(hf_justdo_enter(&add_function, to, &resumed));
    switch (resumed) {
    case 0:
        f = to;
        hf_justdo_note(&f, sizeof f);
        hf_justdo_lock(&f->first, HF_JUSTDO_EXCLUSIVE, 1);
        if (dies) ::_exit(0);
        [[fallthrough]];
    case 1:
        gate_open.wait(false);
        hf_justdo_lock(&f->second, HF_JUSTDO_EXCLUSIVE, 2);
        [[fallthrough]];
    case 2: hf_justdo_store(&f->sum, f->sum + 1, 8, 3); [[fallthrough]];
    case 3: hf_justdo_unlock(&f->second, HF_JUSTDO_EXCLUSIVE, 4); [[fallthrough]];
    case 4: hf_justdo_unlock(&f->first, HF_JUSTDO_EXCLUSIVE, 5);
    }
    hf_justdo_leave();
}
const hf_justdo_function add_function{
    HF_ABI_VERSION, 8, 5401, 1, "add", "resumed_test", 5, 0, [] { add(nullptr); }, nullptr};
[[maybe_unused]] const bool registered = (hf_justdo_register(&add_function), true);

class Resumed : public ::testing::Test {
protected:
    ~Resumed() override { ::unlink(path_.c_str()); }
    hf_pool* open() {
        const hf_open_options options = {.layout = "resumed_test/1"};
        hf_pool* pool = nullptr;
        EXPECT_EQ(hf_pool_open(path_.c_str(), &options, &pool), HF_OK) << hf_error_text();
        return pool;
    }
    static root* root_of(hf_pool* pool) {
        void* at = nullptr;
        EXPECT_EQ(hf_pool_root(pool, sizeof(root), &at), HF_OK) << hf_error_text();
        return static_cast<root*>(at);
    }
    void leave_open() {
        const pid_t child = ::fork();
        if (child == 0) {
            dies = true;
            add(root_of(open()));
        }
        int how = 0;
        ::waitpid(child, &how, 0);
        ASSERT_TRUE(WIFEXITED(how));
    }
    const std::string path_ = "/dev/shm/hf_resumed_test." + std::to_string(::getpid());
};

TEST_F(Resumed, OneThatWaitsForNewWorksLockIsWaitedFor) {
    leave_open();
    hf_pool* const pool = open();
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(hf_pool_recovered(pool).resumed, 1U);
    root* const r = root_of(pool);
    r->second.lock();
    gate_open = true;
    gate_open.notify_all();
    std::thread holder([&] { // long enough for a section that waits to look about
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        EXPECT_EQ(r->sum, 0U);
        r->second.unlock();
    });
    hf_pool_wait_resumed(pool);
    holder.join();
    EXPECT_EQ(r->sum, 1U);
    EXPECT_TRUE(r->first.try_lock());
    r->first.unlock();
    hf_pool_close(pool);
}

TEST_F(Resumed, WaitingInASectionEndsTheProcessInWords) {
    EXPECT_EXIT(
        {
            hf_pool* const pool = open();
            root* const r = root_of(pool);
            std::uint32_t resumed = 0;
            *static_cast<root**>(hf_justdo_enter(&add_function, r, &resumed)) = r;
            hf_justdo_lock(&r->first, HF_JUSTDO_EXCLUSIVE, 1);
            hf_pool_wait_resumed(pool);
        },
        ::testing::KilledBySignal(SIGABRT), "hf_pool_wait_resumed in a section");
}

} // namespace
