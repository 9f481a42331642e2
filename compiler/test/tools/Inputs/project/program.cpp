// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

#if defined(HELPER_ELSEWHERE)
void add_one(long* p) noexcept; // helper.cpp
#else
static void add_one(long* p) noexcept { *p += 1; }
#endif

HF_TXFUNC void add(long* p) noexcept { add_one(p); }

int main() {
    long x = 1;
    add(&x);
    return x == 2 ? 0 : 1;
}
