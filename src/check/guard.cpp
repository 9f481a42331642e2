// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <check/guard.hpp>

#include <fmt/format.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <sys/time.h>
#include <utility>

namespace hf::check {
namespace {

sigjmp_buf back;
pthread_t guarded; // the thread that 'back' belongs to
volatile sig_atomic_t guarding = 0;
volatile sig_atomic_t ticks = 0, ticks_max = 0;
std::string last_words; // written before the jump, by the thread that makes it
constexpr double tick_seconds = 0.05;
void (*volatile tick_call)(void*) = nullptr;
void* volatile tick_context = nullptr;

void give_up(int signal, siginfo_t* about, void*) {
    if (guarding == 0 || ::pthread_equal(guarded, ::pthread_self()) == 0) {
        ::signal(signal, SIG_DFL);
        ::raise(signal);
        return;
    }
    if (last_words.empty()) {
        last_words = fmt::format("died: SIG{}", ::sigabbrev_np(signal));
        if (signal == SIGSEGV || signal == SIGBUS)
            last_words += fmt::format(" at {}", about->si_addr);
    }
    ::siglongjmp(back, 1);
}

/// An interruption may come here while another call is half set.
void call_out() {
    auto* const call = tick_call;
    void* const context = tick_context;
    if (call != nullptr && context != nullptr) call(context);
}

void tick(int, siginfo_t* about, void*) {
    if (guarding == 0) return;
    const bool passed_on = about->si_code == SI_TKILL;
    if (::pthread_equal(guarded, ::pthread_self()) == 0) {
        // The guarded thread counts the ticks; the thread that has the turn makes the call.
        if (!passed_on) ::pthread_kill(guarded, SIGALRM);
        else call_out();
        return;
    }
    call_out();
    ticks = ticks + 1;
    if (ticks <= ticks_max) return;
    last_words = fmt::format("did not end within {:.1f} s", ticks_max * tick_seconds);
    ::siglongjmp(back, 1);
}

void on_fatal(const char* message) {
    if (guarding == 0 || ::pthread_equal(guarded, ::pthread_self()) == 0) {
        std::fprintf(stderr, "holdfast: %s\n", message);
        return;
    }
    last_words = fmt::format("gave up: {}", message);
    ::siglongjmp(back, 1);
}

void install() {
    static const bool once = [] {
        static std::byte stack[64 << 10];
        stack_t other{};
        other.ss_sp = stack;
        other.ss_size = sizeof stack;
        ::sigaltstack(&other, nullptr);
        struct sigaction action{};
        action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | SA_RESTART;
        action.sa_sigaction = give_up;
        for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(s, &action, nullptr);
        action.sa_sigaction = tick;
        ::sigaction(SIGALRM, &action, nullptr);
        const auto microseconds = static_cast<suseconds_t>(tick_seconds * 1e6);
        const itimerval every{{0, microseconds}, {0, microseconds}};
        ::setitimer(ITIMER_REAL, &every, nullptr);
        set_fatal_handler(on_fatal);
        return true;
    }();
    (void)once;
}

} // namespace

void at_every_tick(void (*call)(void*), void* context) noexcept {
    tick_context = context;
    tick_call = call;
}

std::string run_guarded(double seconds_max, const std::function<void()>& body) {
    install();
    // A guarded run may wait for another thread, which guards its own work.
    sigjmp_buf outer;
    std::memcpy(&outer, &back, sizeof outer);
    const pthread_t outer_thread = guarded;
    const sig_atomic_t outer_guarding = guarding, outer_ticks_max = ticks_max;
    ticks = 0;
    ticks_max = static_cast<sig_atomic_t>(seconds_max / tick_seconds) + 1;
    last_words.clear();
    guarded = ::pthread_self();
    guarding = 1;
    if (sigsetjmp(back, 0) == 0) body();
    guarding = 0;
    if (!last_words.empty()) at_every_tick(nullptr, nullptr); // it may have been left by a jump
    ticks_max = outer_ticks_max;
    std::memcpy(&back, &outer, sizeof outer);
    guarded = outer_thread;
    guarding = outer_guarding;
    return last_words.empty() ? std::string() : std::exchange(last_words, {});
}

} // namespace hf::check
