// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct counter { long value; };

// [bad]
long next(long value);                // defined in another file

HF_TXFUNC void count(counter* c) noexcept {
    c->value = next(c->value);        // error: whose body is not visible here
}
// [/bad]
