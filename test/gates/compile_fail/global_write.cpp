// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct counter { long value; };

// [bad]
long calls = 0;

HF_TXFUNC void count(counter* c) noexcept {
    c->value += 1;
    calls = c->value;                 // error: write to global variable 'calls', which is volatile
}
// [/bad]
