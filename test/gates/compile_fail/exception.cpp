// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct account { long cents; };

// [bad]
HF_TXFUNC void withdraw(account* a, long cents) {
    if (a->cents < cents) throw cents;   // error: exception handling
    a->cents -= cents;
}
// [/bad]
