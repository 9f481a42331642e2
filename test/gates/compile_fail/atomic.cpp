// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

#include <atomic>

// [bad]
struct counter { std::atomic<long> value; };

HF_TXFUNC void count(counter* c) noexcept {
    c->value.fetch_add(1);   // error in a header: atomic operation: take locks before
}
// [/bad]
