// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

// [bad]
struct entry { const char* name; void (*act)(); };
void act();

HF_TXFUNC void fill(entry* e) noexcept {
    e->name = "anonymous";            // error: address of a literal or constant
    e->act = act;                     // error: address of function 'act()'
}
// [/bad]
static constexpr long table[4] = {1, 2, 3, 4};
inline const char* word(int which) { return which > 3 ? "many" : "few"; }
static void set(const long** at, const long* to) { *at = to; }
HF_TXFUNC void helpers(const long** at, const char** name, int which) noexcept {
    set(at, table);                   // error in a header: address of constant 'table
    *name = word(which);              // error: address of a literal or constant
}
