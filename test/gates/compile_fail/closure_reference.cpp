// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/tx.hpp>

struct counter { long value; };

// [bad]
long count(const hf::pool& pool, counter* c) {
    long before = 0;
    hf::tx(pool, [&before, c] {       // error: closure of hf::tx captures the address of a local variable
        before = c->value;
        c->value += 1;
    });
    return before;
}
// [/bad]
