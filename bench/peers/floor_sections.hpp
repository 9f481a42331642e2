// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of old words that a section by hand has in mode process (floor_sections.cpp).
#pragma once

#include "../section/sections_under_test.hpp"

#include <atomic>
#include <cstdint>

namespace hf::bench::in_order {

struct old_word {
    std::uint64_t* where;
    std::uint64_t value;
};
struct undo_log {
    std::atomic<std::uint64_t> used; // entries that count
    old_word entries[section_lines];
};
/// The calling thread's.
extern constinit thread_local undo_log* own __attribute__((tls_model("initial-exec")));

/// One at a time on a thread.
class section {
public:
    /// Before the word changes. x86 keeps the order of stores, and the compiler is held to it.
    void keep(std::uint64_t* word) {
        log_.entries[used_] = {word, *word};
        log_.used.store(++used_, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    void commit() { log_.used.store(0, std::memory_order_release); }

private:
    undo_log& log_ = *own;
    std::uint64_t used_ = 0;
};

} // namespace hf::bench::in_order
