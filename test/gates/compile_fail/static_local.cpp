// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct counter { long value; };
inline long seed(long value) { return value * 31; }

// [bad]
HF_TXFUNC void count(counter* c) noexcept {
    static const long first = seed(c->value);   // error: initialisation of a function-local
    c->value += first;
}
// [/bad]
