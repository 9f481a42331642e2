// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marking failure-atomic functions. The build chooses the engine (CMake: holdfast_instrument(target
// ENGINE clobber), or the holdfast-clang++ wrapper); the source does not change. Engine "none"
// means plain functions without failure atomicity; mark.h detects a build that forgot the plugin.
//
// With engines auto and redo an exception may leave a txfunc, and it may call hf::abort_section:
// both take it back. With the other engines it is noexcept. With clobber, which runs it again after
// a crash, it is also deterministic. It touches volatile memory only through its own locals and
// vlog_preserve. Its caller holds its locks (strong strict two-phase locking, Clobber §2.2). Every
// section works on one pool.
#pragma once

#include <holdfast/author/mark.h>

#include <cstddef>
#include <type_traits>

// Which engine this translation unit is built for; holdfast_instrument defines it.
#if !defined(HF_ENGINE)
#define HF_ENGINE none
#endif
#define HF_ENGINE_TEXT_(engine) #engine
#define HF_ENGINE_TEXT(engine) HF_ENGINE_TEXT_(engine)

extern "C" const void* hf_vlog_preserve(const void* volatile_bytes, std::size_t bytes) noexcept;
extern "C" void hf_crash_point(const char* name) noexcept;
extern "C" void hf_abort_section(void) noexcept;

namespace hf {

/// Records 'count' objects of volatile memory, which the txfunc reads, in the v_log. Returns where
/// to read them: a copy that does not change until the section ends, and that has the same bytes
/// when the section is re-executed.
///
/// Requires: called in a txfunc before its first store to PM.
/// Ordering: 0 points of its own; travels with the section's first fence.
/// Source:   Clobber §4.1-4.2.
template <class T> const T* vlog_preserve(const T* volatile_objects,
                                          std::size_t count = 1) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<const T*>(hf_vlog_preserve(volatile_objects, count * sizeof(T)));
}

/// Dooms the open section: it runs on to its end, and sees what it stores as before. Then it leaves
/// no trace in the pool: what it has stored, allocated, adopted and freed is taken back. Its
/// function returns its value to the caller; volatile memory stays as the section left it. A
/// function that joined an open section dooms that section.
///
/// An exception that leaves a section takes it back likewise, and goes on to the caller. An
/// exception that is caught inside takes nothing back.
///
/// Requires: engine auto or redo; the compiler refuses it for others. Outside a section it stops
///           the process.
/// Ordering: 0 points.
/// Crash:    before the section's end: as of any pending section. After it: no trace.
inline void abort_section() noexcept { hf_abort_section(); }

/// A named place where tests and demonstrations let the process die: with HOLDFAST_CRASH_AT=name in
/// the environment the process sends itself SIGKILL there. Otherwise it does nothing.
inline void crash_point(const char* name) noexcept { hf_crash_point(name); }

} // namespace hf
