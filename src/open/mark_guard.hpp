// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores to a pool that no section knows of, reported before they are made
// (expert_options::guard_marks): outside of sections, or by a function that a section takes for one
// that stores nothing.
//
// (1) A pool is read-only for its process from its open on, and again when a section ends: behind
//     each of the first ones, later where some milliseconds have passed since. So a program of many
//     sections pays for few of them, and a mistake that it repeats is found. A section makes the
//     pool writable when it begins; where its engine knows each of its stores, its first store to a
//     page makes that page so, and is looked at.
// (2) A store of the library outside of sections is made alone: the processor stops behind it. The
//     innermost function outside of the standard library is one of namespace hf then, or has code
//     of the public headers inlined. Line tables are needed, and llvm-symbolizer or addr2line: what
//     is done by unknown code passes.
// (3) A staged block is the program's to fill. Not seen are stores while the pool is writable: by
//     (1), for another thread's section, or one that resumes; where the library has stored outside
//     of sections often (on processors other than x86-64: once) since one ended.
// (4) The system cannot store there either: a read() into a staged block fails where another thread
//     ends a section at the same time.
#pragma once

#include <holdfast/pool.hpp>

#include <atomic>
#include <cstdint>

namespace hf::mark_guard {

/// What is kept of a pool.
struct state {
    std::atomic<bool> writable{true}; // for certain: its protection need not be changed
    std::atomic<std::uint64_t> sections{0};
    std::atomic<std::int64_t> closed_ms{0}; // when it was last made read-only
    std::atomic<unsigned> pages{0};         // that were made writable by themselves since
};
/// Behind so many sections of a pool it is made read-only at once, later once in so long (1).
inline constexpr std::uint64_t each_of_first = 256;
inline constexpr std::int64_t pause_ms = 4;

/// Guards the process's pools from here on, if the options or the environment ask for it.
/// Requires: the pool is open.
void start(const expert_options& options, pool::impl& pool);
/// A section has ended: the pool is read-only, if it is time (1). Requires: is_on().
void close(pool::impl& pool) noexcept;
/// The pool is writable: a section begins, or the pool is closed.
void open(pool::impl& pool) noexcept;

/// Where a store comes from, on this thread.
enum class store_of : std::uint8_t {
    nobody,          // it is outside of sections
    section,         // or of a program that fills a block of its own: more may follow unseen
    section_as_told, // the section has announced it
    section_untold   // it is in a section that does not know of it
};
void ask(store_of (*whose)(const void* address) noexcept) noexcept;

namespace detail {
extern constinit std::atomic<bool> on;
}
inline bool is_on() noexcept { return detail::on.load(std::memory_order_relaxed); }

} // namespace hf::mark_guard
