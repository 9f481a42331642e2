// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

HF_TXFUNC void add(long* p) noexcept { *p += 1; }

int main() {
    long x = 1;
    add(&x);
    return x == 2 ? 0 : 1;
}
