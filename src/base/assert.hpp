// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Broken contracts stop the process before it writes nonsense to PM. Cheap assertions stay on in
// release builds. HF_ASSERT_SLOW is for whole-structure checks and for the path of every store: it
// is on in debug builds, and wherever HF_SLOW_ASSERTIONS is defined (optimised code, checked).
//
// The contents of a pool's file are judged, and refused, before anything is asserted of them:
// damage is an error, never a broken contract.
#pragma once

#include <mutex>
#if defined(__GLIBC__)
#include <unistd.h>
#endif

namespace hf {
[[noreturn]] void contract_broken(const char* condition, const char* file, int line) noexcept;
/// Gives one line to the log (stderr) and aborts: a broken contract that the caller can understand.
[[noreturn]] void fatal(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));
/// Called with the message instead of printing it, before the process aborts; it need not return.
/// For the crash checker, to which a recovery that gives up is a finding. Null: none.
void set_fatal_handler(void (*handler)(const char* message)) noexcept;
/// The same for this thread, and asked first: recovery turns what it cannot go on with into a
/// refusal. One that returns has declined.
void set_thread_fatal_handler(void (*handler)(const char* message)) noexcept;

/// Whether this thread holds the lock; true if the C library does not report it. For assertions.
inline bool held_here([[maybe_unused]] std::mutex& lock) noexcept {
#if defined(__GLIBC__)
    return lock.native_handle()->__data.__owner == ::gettid();
#else
    return true;
#endif
}
} // namespace hf

#define HF_ASSERT(condition)                                                                       \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : ::hf::contract_broken(#condition, __FILE__, __LINE__))
#if defined(NDEBUG) && !defined(HF_SLOW_ASSERTIONS)
#define HF_ASSERT_SLOW(condition) ((void)0)
#else
#define HF_ASSERT_SLOW(condition) HF_ASSERT(condition)
#endif
