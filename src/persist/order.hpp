// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What order stores keep without a flush: of the thread that makes them, for a failure, and for
// others that look. docs/internals/persistency-model.md
#pragma once

#include <atomic>

namespace hf::persist {

/// The thread's stores before it come before its stores behind it: for a kill, which needs the
/// compiler to keep to that, and for readers in this process and others. No instruction on x86-64;
/// dmb on ARM64, which only readers need.
inline void order_stores() noexcept { std::atomic_thread_fence(std::memory_order_acq_rel); }

/// Whether a thread's stores reach the processor's cache in program order. Then what eADR keeps of
/// them is a prefix. On ARM64 any of those that are still on the way may arrive first.
#if defined(__x86_64__)
inline constexpr bool caches_get_stores_in_order = true;
#else
inline constexpr bool caches_get_stores_in_order = false;
#endif

} // namespace hf::persist
