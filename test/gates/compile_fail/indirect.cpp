// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct counter { long value; };

// [bad]
HF_TXFUNC void count(counter* c, long (*next)(long)) noexcept {
    c->value = next(c->value);        // error: indirect call
}
// [/bad]
