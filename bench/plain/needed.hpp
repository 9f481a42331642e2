// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sections of engine clobber log, and what recovery by re-execution needs: counted access by
// access, in code built in trace mode (holdfast/abi/trace_abi.h), over the true runtime.
//
// (1) A byte that a section reads before it has stored to it is an input; memory that it has
//     allocated holds no inputs.
// (2) Needed are the old bytes of inputs, of the first store that overwrites them: the dynamic
//     minimum, which no analysis can go below for this run.
// (3) Logged is what the compiler asked for, less what is logged already: the static, conservative
//     choice. It includes everything needed, or the section could not be recovered. And the section
//     stores to all of it: other bytes could belong to another section when they are put back.
//
// The compiler's calls of the runtime pass through here (linked with --wrap).
#pragma once

#include <cstdint>

namespace hf::bench::plain {

/// Words are of 8 bytes, aligned, and counted where any of their bytes is concerned.
struct needs {
    std::uint64_t sections = 0;
    std::uint64_t stores = 0;         // that begin where the section has not allocated
    std::uint64_t overwritten = 0;    // words that they changed: what engine undo has to log
    std::uint64_t entries = 0;        // of the log
    std::uint64_t logged = 0;         // words in them
    std::uint64_t needed_entries = 0; // runs of neighbouring words that are needed
    std::uint64_t needed = 0;         // words
    std::uint64_t missing = 0;        // bytes that were needed and not logged
    std::uint64_t unstored = 0;       // bytes that were logged and not stored to
};

/// The needs of the thread's sections, since the thread began.
const needs& thread_needs() noexcept;

} // namespace hf::bench::plain
