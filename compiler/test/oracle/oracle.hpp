// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A runtime made to catch the compiler: it implements the ABI over a static buffer, crashes a
// section at every event it can see, recovers by the book and compares every byte.
//
// For each scenario and each event k (a note, a log entry, an allocation, the commit; in code built
// in trace mode every store, too):
//
// 1. Restore the start image, run the section, leave it by longjmp at event k.
// 2. Make a legal image of PM: what was stored; or, since nothing of it was written back, a part:
//    every line a prefix of the words stored to it (traced code), or any mix of old and new words.
// 3. Clobber: restore the log newest first, re-execute from the recorded arguments, and compare the
//    whole pool with an uninterrupted run. Undo: restore and compare with the start image. Redo:
//    nothing was stored in place.
// 4. Clobber: crash the re-execution too, at every event (or --nested N of them), and recover again.
//
// Besides, in the uninterrupted run: every byte that the section changes must have been noted or
// logged. Traced code is judged access by access, so that no value can hide a mistake:
//
// 5. A byte read before the section wrote it is an input. The first store to an input must be logged;
//    engine undo: the first store to any byte that is not fresh.
// 6. Engine redo: no store but to fresh memory is made in place before the commit, and no byte that
//    is in the buffer is read in place.
// 7. A store is noted or logged, and no other call of the runtime lies between the note and it.
// 8. An entry made ahead of its stores is durable before anything is stored in place, and each of its bytes
//    is stored to: what is not may be another section's. Until then a crash may lose it.
//
// A section that is left by an exception has stored nothing in place, and its memory is as if it had never
// taken it.
//
// With --images it prints what each scenario makes of the pool, and of the blocks that can be reached
// there: the same, whichever the engine, and without any.
#pragma once

#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {
__attribute__((malloc)) void* hf_alloc(std::size_t bytes) noexcept;
void hf_free(void* block) noexcept;
}

namespace oracle {

inline constexpr std::size_t heap_bytes = 4096;
inline constexpr std::size_t pool_bytes = 8192; // the application's half, then hf_alloc's

/// The application's part of the pool; zero when a scenario's 'prepare' runs.
extern std::byte* const pool;
template <class T> T* at(std::size_t offset) { return reinterpret_cast<T*>(pool + offset); }

struct scenario {
    const char* name;
    void (*prepare)();
    void (*run)(); // calls one txfunc
    scenario* next = nullptr;

    scenario(const char* name, void (*prepare)(), void (*run)());
};

/// The scenario's section has thrown. Without an engine this takes back what it stored.
void left_by_exception();
/// Whether the open section is of engine undo.
bool runs_in_order();

/// Passed and returned in memory, by functions whose bodies the compiler does not see.
struct digested {
    unsigned long x[4];
};

} // namespace oracle

extern "C" {
HF_PURE unsigned long oracle_digest(oracle::digested from) noexcept;
HF_PURE oracle::digested oracle_spread(unsigned long from) noexcept;
/// A place in the pool, for sections that are not given it.
HF_PURE void* oracle_place(std::size_t offset) noexcept;
}

/// SCENARIO(name, [] { prepare }, [] { run })
#if !defined(ORACLE_ONLY)
#define SCENARIO(name, ...) static oracle::scenario scenario_##name{#name, __VA_ARGS__};
#else
// The scenario of this name alone: the others, and the sections that only they call, are not compiled.
#undef HF_TXFUNC
#define HF_TXFUNC                                                                                  \
    __attribute__((annotate("holdfast.txfunc"), noinline, section("hf_uninstrumented"))) inline
#define SCENARIO(name, ...)                                                                        \
    [[maybe_unused]] static auto scenario_##name = [] {                                            \
        if constexpr (std::string_view(#name) == ORACLE_ONLY)                                      \
            return oracle::scenario{#name, __VA_ARGS__};                                           \
        else                                                                                       \
            return 0;                                                                              \
    }();
#endif
