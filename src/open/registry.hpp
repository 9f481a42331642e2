// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Process-wide tables: the open pools, by address, and the txfuncs of this build, by identifier.
#pragma once

#include <base/engines.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/pool.hpp>

#include <atomic>
#include <mutex>

namespace hf {

class section;
/// The section open on this thread, or null.
extern constinit thread_local section* current_section __attribute__((tls_model("initial-exec")));

/// The engine of the function that runs here, if its sections are in no lane, and resume; null: no
/// such function. And its name, if its section is open; else null.
struct resumed_section {
    const engine_row* engine = nullptr;
    const char* function = nullptr;
};
/// Returns the one that is open on this thread. No section of another engine may be part of it, nor
/// an update that is failure-atomic by itself: that one would have happened already when the
/// resumed section makes it again. The engine that has such sections sets the pointer; else it is
/// null.
extern constinit std::atomic<resumed_section (*)() noexcept> resumes_here;

/// Whether a section of any engine is open on this thread.
inline bool any_section_here() noexcept {
    if (current_section != nullptr) return true;
    const auto asks = resumes_here.load(std::memory_order_relaxed);
    return asks != nullptr && asks().function != nullptr;
}

namespace registry {

void add(pool::impl* pool);
void remove(pool::impl* pool);
/// The open pool whose range covers 'address', or null. Lock-free.
pool::impl* pool_of(const void* address) noexcept;
/// The process's only open pool; null if it has none or more than one.
pool::impl* only_pool() noexcept;
/// Its instance number; 0 without such a pool.
std::uint64_t only_instance() noexcept;
/// Whether 'address' was in a pool that the parent of this process has open; null means any address
/// of such a pool.
bool is_parents(const void* address) noexcept;
/// Ends the process if the address was in such a pool.
void refuse_parents(const void* address, const char* what) noexcept;
/// True when a pool with this instance number is open. Requires: guard() held.
bool is_open(std::uint64_t instance) noexcept;
/// Whether the pool has a place here: added, not removed since. For assertions.
bool is_added(const pool::impl* pool) noexcept;
/// Held while a pool is added or removed, and by a thread that leaves.
std::mutex& guard() noexcept;

/// The function that has this identifier and version; else one that has the identifier, so that it
/// can be named; else null.
const hf_txfunc* find_txfunc(std::uint64_t id, std::uint64_t version) noexcept;

/// Bits of the engines that this program's failure-atomic functions are built for, and of routines
/// that resume: of those that are registered, as all of a program are before its own constructors.
std::uint32_t engines_of_functions() noexcept;
/// Bits of the engines that the function is compiled for; 0: it is described by hand.
std::uint32_t engines_of(const hf_txfunc& function) noexcept;
/// The same; 'fenced': without the form that pools in such a medium never run.
std::uint32_t engines_that_run(bool fenced) noexcept;
/// One function more, or less, that is compiled for these engines: none if it is described by hand,
/// two where the pool's medium chooses.
void count_function(std::uint32_t engines, int change) noexcept;

namespace detail {
extern constinit std::atomic<std::uint64_t> only_instance;
}
inline std::uint64_t only_instance() noexcept {
    return detail::only_instance.load(std::memory_order_relaxed);
}

} // namespace registry
} // namespace hf
