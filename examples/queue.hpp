// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A queue of jobs in a pool: a ring of fixed capacity. Plain code, checked by crash_queue.cpp.
#pragma once

// [include]
#include <holdfast/holdfast.hpp>
// [/include]

#include <cstdint>

namespace queue {

// [operations]
/// The pool's root. Zero-filled: an empty queue. Jobs stand at taken, taken + 1 … put - 1, modulo
/// the capacity.
struct jobs {
    static constexpr std::uint64_t capacity = 4;
    std::uint64_t put, taken;
    char* text[capacity]; // a block of its own each
};

/// Appends a job. False when the queue, or the pool, is full.
HF_TXFUNC inline bool put(jobs* q, std::uint64_t number) noexcept {
    if (q->put - q->taken == jobs::capacity) return false;
    char* text = static_cast<char*>(hf_alloc(32));
    if (text == nullptr) return false;
    for (int i = 0; i < 31; ++i) text[i] = static_cast<char>('a' + (number + i) % 26);
    text[31] = 0;
    q->text[q->put % jobs::capacity] = text;
    q->put += 1;
    return true;
}

/// Removes the oldest job. False without one.
HF_TXFUNC inline bool take(jobs* q) noexcept {
    if (q->put == q->taken) return false;
    hf_free(q->text[q->taken % jobs::capacity]);
    q->taken += 1;
    return true;
}
// [/operations]

} // namespace queue
