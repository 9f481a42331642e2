// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lock that costs its usual owner no locked instruction. Such an instruction waits, as a fence
// does, for the word that the last commit stored: a writer that commits durable by its next section
// would pay two waits a commit instead of one (measured: 200 ns against 330). A short call of a
// persistent object would take twice its time (simpo).
//
// (1) The thread to which the lock is biased enters by storing 'busy' and checking that the bias is
//     still its own. Another thread takes the bias away, makes that visible everywhere (membarrier
//     replaces the owner's missing fence between its store and its load), and waits for 'busy' to
//     end.
// (2) All other threads exclude each other by the mutex; its holder gives and takes the bias.
// (3) Each time a bias is taken away, the next bias needs twice as long a row of entries.
#pragma once

#include <base/assert.hpp>

#include <linux/membarrier.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace hf {

class writer_lock {
public:
    void lock() noexcept {
        if (enter_by_bias()) return;
        mutex_.lock();
        if (bias_.load(std::memory_order_relaxed) != 0) take_bias();
        while (is_busy()) ::sched_yield(); // it may have lost its bias to a try_lock()
        enter_by_mutex();
    }

    /// False: another thread is inside, or tries to be.
    bool try_lock() noexcept {
        if (enter_by_bias()) return true;
        if (!mutex_.try_lock()) return false;
        if (bias_.load(std::memory_order_relaxed) != 0) take_bias();
        if (is_busy()) {
            mutex_.unlock();
            return false;
        }
        enter_by_mutex();
        return true;
    }

    void unlock() noexcept {
        HF_ASSERT_SLOW(is_held());
        if (!by_mutex_) {
            busy_.store(false, std::memory_order_release);
            return;
        }
        by_mutex_ = false;
        if (row_ >= needed_ && can_bias()) bias_.store(last_, std::memory_order_release);
        mutex_.unlock();
    }

    /// Whether a thread is inside: for assertions by that thread.
    bool is_held() const noexcept { return busy_.load(std::memory_order_relaxed) || by_mutex_; }

    /// The calling thread's number, never 0.
    static std::uint64_t thread_number() noexcept {
        if (number_ == 0) number_ = numbers_.fetch_add(1, std::memory_order_relaxed) + 1;
        return number_;
    }

private:
    bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }
    bool enter_by_bias() noexcept {
        const std::uint64_t me = thread_number();
        if (bias_.load(std::memory_order_acquire) != me) return false;
        busy_.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst); // (1)
        if (bias_.load(std::memory_order_acquire) == me) return true;
        busy_.store(false, std::memory_order_release);
        return false;
    }
    void enter_by_mutex() noexcept {
        HF_ASSERT(!by_mutex_); // (2)
        by_mutex_ = true;
        const std::uint64_t me = thread_number();
        row_ = last_ == me ? row_ + 1 : 0;
        last_ = me;
    }
    static bool can_bias() noexcept {
        // Not a function's static with an initialiser: registering takes long while several threads
        // run, and a child of fork() would wait for ever for a thread that was initialising it.
        // Registering twice does no harm.
        static constinit std::atomic<int> known{0}; // 1: registered, -1: it cannot be
        int found = known.load(std::memory_order_relaxed);
        if (found == 0) {
            const long done =
                ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
            found = done == 0 ? 1 : -1;
            known.store(found, std::memory_order_relaxed);
        }
        return found == 1;
    }
    void take_bias() noexcept {
        HF_ASSERT(can_bias());
        bias_.store(0, std::memory_order_seq_cst);
        (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
        if (needed_ < 1U << 20) needed_ *= 2;
    }

    static inline constinit std::atomic<std::uint64_t> numbers_{0};
    static inline constinit thread_local std::uint64_t number_
        __attribute__((tls_model("initial-exec"))) = 0;

    std::atomic<std::uint64_t> bias_{0}; // number of the thread that needs no mutex; 0: none
    std::atomic<bool> busy_{false};      // that thread is inside
    std::mutex mutex_;
    bool by_mutex_ = false;    // the thread that is inside came by the mutex
    std::uint32_t row_ = 0;    // entries of 'last_' in a row
    std::uint32_t needed_ = 8; // of them for a bias
    std::uint64_t last_ = 0;
};

} // namespace hf
