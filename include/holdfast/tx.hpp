// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A section written where it is used: hf::tx(pool, [=] { … }).
//
// (1) The closure is the section's record. Its bytes are logged when the section begins, and
//     recovery calls a copy of them. So it captures by value, and is trivially copyable.
// (2) A pointer that it captures leads into the pool, or is read through hf::vlog_preserve only.
//     The compiler refuses a closure in which it sees the address of a local or global variable. A
//     section that begins with any other pointer to elsewhere stops the process. Engines auto and
//     redo, which call nothing again, allow both: there [&] is fine.
// (3) An exception may leave it with engines auto and redo only, and takes the section back. With
//     other engines the compiler refuses a closure that throws.
//
// A lambda has no name of its own. The log identifies it by the function that contains it and its
// place among that function's lambdas. A closure that has changed since is not re-executed.
#pragma once

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <type_traits>

struct hf_pool;
extern "C" const void* hf_pool_base(const hf_pool* of) noexcept; // <holdfast/holdfast.h>

namespace hf {

class pool;

namespace detail {

/// The pool's first byte.
const void* base_of(const pool& of) noexcept;
inline const void* base_of(const hf_pool* of) noexcept { return hf_pool_base(of); }

/// A closure as it is passed: always in memory. In registers, unoptimised code would not show which
/// of its words are pointers.
template <class F, bool InRegisters = (sizeof(F) <= 16)> struct recorded {
    F closure;
};
template <class F> struct recorded<F, true> {
    F closure;
    unsigned char zero[17 - sizeof(F)];
};

template <class F>
HF_TXFUNC HF_CLOSURE auto run(const void* pool,
                              recorded<F> section) noexcept(noexcept(section.closure())) {
    hf_section_in(pool);
    return section.closure();
}

template <class Pool, class F>
[[gnu::always_inline]] inline auto
run_in(const Pool& in, const F& section) noexcept(std::is_nothrow_invocable_v<F&>) {
    using result = std::invoke_result_t<F&>;
    static_assert(std::is_trivially_copyable_v<F>,
                  "hf::tx: the closure is recorded as bytes and must be trivially copyable; keep "
                  "strings and containers in the pool and capture pointers to them");
    static_assert(std::is_void_v<result> || std::is_trivially_copyable_v<result>,
                  "hf::tx: the result must be void or trivially copyable");
    static_assert(sizeof(void*) + sizeof(recorded<F>) <= HF_ARGS_BYTES_MAX,
                  "hf::tx: the closure is too large for a section's record: capture a pointer "
                  "into the pool, or use hf::vlog_preserve");
    if constexpr (sizeof(F) <= 16) return run<F>(base_of(in), {section, {}});
    else return run<F>(base_of(in), {section});
}

} // namespace detail

/// Runs 'section' as a failure-atomic section of the pool 'in': all of its changes there survive a
/// crash, or none. Returns what 'section' returns.
///
/// Requires: the section's locks are held; not called in a section (there, call the function
///           itself).
/// Ordering: as a txfunc that does the same.
/// Crash:    engine clobber: the next open completes it if it had stored anything in place. Engine
///           undo: rolled back. Engine redo: all of it or nothing.
/// Errors:   engines auto and redo pass on what the closure throws. Engine redo, and so auto in mode
///           pmem, throws std::bad_alloc when the pool has no room for the section's log. Nothing
///           has changed then. If the closure is noexcept, such an exception ends the process.
/// Threads:  any, each with the locks of its section.
/// Source:   Clobber §2.3 and §4.1, where a txfunc is a function with a name.
template <class F>
[[gnu::always_inline]] inline auto tx(const pool& in,
                                      const F& section) noexcept(std::is_nothrow_invocable_v<F&>) {
    return detail::run_in(in, section);
}
/// The same for a pool opened through the C API.
template <class F>
[[gnu::always_inline]] inline auto tx(const hf_pool* in,
                                      const F& section) noexcept(std::is_nothrow_invocable_v<F&>) {
    return detail::run_in(in, section);
}

} // namespace hf
