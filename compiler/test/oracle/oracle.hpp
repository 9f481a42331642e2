// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A runtime made to catch the compiler: it implements the ABI over a static buffer, crashes a
// section at every event it can see, recovers by the book and compares every byte.
//
// For each scenario and each event k (a note, a log entry, an allocation, the commit):
//
// 1. Restore the start image, run the section, leave it by longjmp at event k.
// 2. Make a legal image of PM: what was stored; or, since stores that no fence has ordered may be
//    lost, a mix of old and new words, several per event.
// 3. Clobber: restore the log newest first, re-execute from the recorded arguments, and compare the
//    whole pool with an uninterrupted run. Undo: restore and compare with the start image.
// 4. Clobber: crash the re-execution too, at every event, and recover again.
//
// Besides: every byte that an uninterrupted section changes must have been noted or logged.
#pragma once

#include <holdfast/txfunc.hpp>

#include <cstddef>
#include <cstdint>

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

} // namespace oracle

/// SCENARIO(name, [] { prepare }, [] { run })
#define SCENARIO(name, ...) static oracle::scenario scenario_##name{#name, __VA_ARGS__};
