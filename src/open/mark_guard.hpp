// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores to a pool outside of sections, reported before they are made
// (expert_options::guard_marks).
//
// (1) A pool is read-only for its process from its open on, and again when a section ends. The
//     first store of a section makes it writable.
// (2) A store of the library outside of sections is made alone: the processor stops behind it. The
//     innermost function outside of the standard library is one of namespace hf then, or has code
//     of the public headers inlined. Line tables are needed, and llvm-symbolizer or addr2line: what
//     is done by unknown code passes.
// (3) A staged block is the program's to fill. Not seen are stores while the pool is writable: for
//     another thread's section, or one that resumes; where the library has stored outside of
//     sections often (on processors other than x86-64: once) since one ended.
// (4) The system cannot store there either: a read() into a staged block fails where another thread
//     ends a section at the same time.
#pragma once

#include <holdfast/pool.hpp>

#include <atomic>

namespace hf::mark_guard {

/// Guards the process's pools from here on, if the options or the environment ask for it.
/// Requires: the pool is open.
void start(const expert_options& options, pool::impl& pool);
/// The pool is read-only. Requires: is_on().
void close(pool::impl& pool) noexcept;
/// The pool is writable: a section begins, which would make it so by its first store, and later; or
/// the pool is closed.
void open(pool::impl& pool) noexcept;
/// 'may_store' says of this thread whether a store there is a section's, or to a block that is
/// the program's to fill.
void ask(bool (*may_store)(const void* address) noexcept) noexcept;

namespace detail {
extern constinit std::atomic<bool> on;
}
inline bool is_on() noexcept { return detail::on.load(std::memory_order_relaxed); }

} // namespace hf::mark_guard
