// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

// [bad]
struct shape { virtual double area() const noexcept = 0; };
struct total { double area; };

HF_TXFUNC void add(total* t, const shape* s) noexcept {
    t->area += s->area();             // error: virtual call that is not resolved here
}
// [/bad]
