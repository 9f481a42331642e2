// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/mod/map.hpp>
#include <holdfast/txfunc.hpp>

using prices = hf::mod::map<long, long>;

// [bad]
struct shop { long orders; };

HF_TXFUNC void order(shop* s, prices* left, long what) noexcept {
    s->orders += 1;
    (void)left->erase(what);          // error: are no part of a section
}
// [/bad]
