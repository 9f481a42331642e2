// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

#include <cstdio>

struct counter { long value; };

// [bad]
HF_TXFUNC void count(counter* c) noexcept {
    c->value += 1;
    std::printf("%ld\n", c->value);   // error: input or output by 'printf' would happen again
}
// [/bad]
