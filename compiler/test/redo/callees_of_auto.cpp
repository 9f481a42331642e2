// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Both forms of a function for two engines call the same functions by address: what engine redo cannot call, the form
// of engine undo does not call either. A section that runs in mode process runs in the others.
// RUN: %hf_clangxx -O1 -mllvm -holdfast-engine=auto -S -emit-llvm %s -o - | FileCheck %s
#include <holdfast/txfunc.hpp>

#include <cstdio>

struct page {
    char text[64];
    long number;
};

static void prints(page* p) { std::snprintf(p->text, sizeof p->text, "%ld", p->number); }
static void counts(page* p) { p->number += 1; }

// CHECK: @hf_callees = {{.*}}ptr @_ZL6printsP4page, ptr null,{{.*}}ptr @_ZL6countsP4page, ptr @_ZL6countsP4page.hf
// CHECK: @hf_callees.{{[0-9]+}} = {{.*}}ptr @_ZL6printsP4page, ptr null,{{.*}}ptr @_ZL6countsP4page, ptr @_ZL6countsP4page.hf
HF_TXFUNC void visit(page* p, void (*what)(page*)) { what(p); }
void visit_both(page* p) {
    visit(p, prints);
    visit(p, counts);
}
