// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

HF_TXFUNC void note(long* where) noexcept {
    long whatever;
    asm volatile("" : "=r"(whatever));   // error: empty inline assembly with an output that has no input
    *where = whatever;
}
