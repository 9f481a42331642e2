// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Marking failure-atomic functions. The build chooses the engine (CMake: holdfast_instrument(target
// ENGINE clobber), or the holdfast-clang++ wrapper); the source does not change. Engine "none"
// means plain functions, no failure atomicity; a plugin that was forgotten is told by mark.h.
//
// With engine redo a txfunc may be left by an exception, or call hf::abort_section: it has then not
// happened. With the others it is noexcept, and with clobber, which runs it again after a crash,
// deterministic. It touches volatile memory only through its own locals and
// vlog_preserve, and is called with its locks held (strong strict two-phase locking, Clobber §2.2).
// Every section works on one pool.
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

/// Records 'count' objects of volatile memory, which the txfunc reads, in the v_log; returns where
/// to read them: a copy that stays as it is until the section ends, whatever becomes of the
/// original, and that has the same bytes when the section is re-executed.
///
/// Requires: called in a txfunc before its first store to PM.
/// Ordering: 0 points of its own; travels with the section's first fence.
/// Source:   Clobber §4.1-4.2.
template <class T> const T* vlog_preserve(const T* volatile_objects,
                                          std::size_t count = 1) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<const T*>(hf_vlog_preserve(volatile_objects, count * sizeof(T)));
}

/// Takes the open section back: it runs on to its end, where it sees what it stores as before, and
/// then what it has stored in the pool, allocated, adopted and freed is as if it had never begun.
/// Its function returns to the caller what it returns; volatile memory stays as the section left
/// it. In a function that joined a section this is the section that it joined.
///
/// An exception that leaves a section does the same, and goes on to the caller. One that is caught
/// inside takes nothing back.
///
/// Requires: engine redo; for others the compiler refuses it. Outside a section it stops the
///           process.
/// Ordering: 0 points.
inline void abort_section() noexcept { hf_abort_section(); }

/// A named place where tests and demonstrations let the process die. Does nothing unless
/// HOLDFAST_CRASH_AT=name is in the environment; then the process sends itself SIGKILL there.
inline void crash_point(const char* name) noexcept { hf_crash_point(name); }

} // namespace hf
