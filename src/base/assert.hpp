// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Broken contracts stop the process before it writes nonsense to PM. Cheap assertions stay on in
// release builds; HF_ASSERT_SLOW runs whole-structure checks in debug builds only.
#pragma once

namespace hf {
[[noreturn]] void contract_broken(const char* condition, const char* file, int line) noexcept;
/// Prints one line to stderr and aborts: a broken contract that the caller can understand.
[[noreturn]] void fatal(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));
/// Called with the message instead of printing it, before the process aborts; it need not return.
/// For the crash checker, to which a recovery that gives up is a finding. Null: none.
void set_fatal_handler(void (*handler)(const char* message)) noexcept;
/// The same for this thread, and asked first: recovery turns what it cannot go on with into a
/// refusal. One that returns has declined.
void set_thread_fatal_handler(void (*handler)(const char* message)) noexcept;
} // namespace hf

#define HF_ASSERT(condition)                                                                       \
    (__builtin_expect(!!(condition), 1) ? (void)0                                                  \
                                        : ::hf::contract_broken(#condition, __FILE__, __LINE__))
#if defined(NDEBUG)
#define HF_ASSERT_SLOW(condition) ((void)0)
#else
#define HF_ASSERT_SLOW(condition) HF_ASSERT(condition)
#endif
