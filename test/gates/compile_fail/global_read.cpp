// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct counter { long value; };

// [bad]
long step = 1;

HF_TXFUNC void count(counter* c) noexcept {
    c->value += step;                 // error: unpreserved volatile input: global variable 'step'
}
// [/bad]
