// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct kind { const char* name; int cost; };
static const kind kinds[] = {{"wood", 1}, {"stone", 2}, {"gold", 9}};

HF_TXFUNC void choose(kind* to, unsigned which) noexcept {
    *to = kinds[which % 3];           // error: address of constant 'kinds'
}
HF_TXFUNC void choose_or_keep(kind* to, const kind* other, unsigned which) noexcept {
    const kind* from = which < 3 ? &kinds[which] : other;
    *to = *from;                      // error: address of constant 'kinds'
}
HF_TXFUNC void named(kind* to, const kind* other) noexcept {
    to->name = other ? other->name : "none"; // error: address of a literal or constant
}
