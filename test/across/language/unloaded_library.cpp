// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library of sections, and of what sections call by address, that is loaded and unloaded.
#include "indirect.hpp"

#include <holdfast/txfunc.hpp>

namespace language_test {

HF_TXFUNC void put_value(cell* c, long value) noexcept { c->value = value; }

long add_to_both(cell* c, long by) {
    c->value += by;
    return c->count += by;
}

} // namespace language_test

extern "C" {
void (*put_value_there)(language_test::cell*, long) = language_test::put_value;
language_test::change add_there = language_test::add_to_both;
}
