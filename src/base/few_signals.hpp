// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Signals of threads that the library makes.
#pragma once

#include <csignal>
#include <initializer_list>

namespace hf {

/// While one lives, a thread that this thread makes takes no signal that is meant for the program.
/// It takes faults, which the kernel would kill the process for if they were blocked, and SIGURG,
/// which fault_guard sends.
class few_signals {
public:
    few_signals() noexcept {
        sigset_t others;
        ::sigfillset(&others);
        for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGURG})
            ::sigdelset(&others, own);
        ::pthread_sigmask(SIG_BLOCK, &others, &before_);
    }
    ~few_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    few_signals(const few_signals&) = delete;
    few_signals& operator=(const few_signals&) = delete;

private:
    sigset_t before_;
};

} // namespace hf
