// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The return address of a report names the line of its access, in functions that were inlined too,
// and when two branches end alike.
// RUN: %clangxx -O1 -c %S/Inputs/print_callers.cpp -o %t.checker.o
// RUN: %hf_clangxx -O2 -no-pie -mllvm -holdfast-trace %s %t.checker.o -o %t.O2
// RUN: %t.O2 > %t.addresses
// RUN: llvm-symbolizer --obj=%t.O2 --no-demangle < %t.addresses | FileCheck %s --match-full-lines
// RUN: %hf_clangxx -O0 -no-pie -mllvm -holdfast-trace %s %t.checker.o -o %t.O0
// RUN: %t.O0 > %t.addresses
// RUN: llvm-symbolizer --obj=%t.O0 --no-demangle < %t.addresses | FileCheck %s --match-full-lines --check-prefix=PLAIN

long* memory();

static inline void set_first(long* p) {
    *p = 1; // line 15
}

__attribute__((noinline)) void branches(long* p, double* q, bool which) {
    if (which)
        *p = 3; // line 20
    else
        *q = 3; // line 22
}

int main() {
    long* const p = memory();
    set_first(p); // line 27
    branches(p, nullptr, true);
    branches(nullptr, reinterpret_cast<double*>(p), false);
}

// CHECK: set_first
// CHECK-NEXT: {{.*}}lines.cpp:15:{{[0-9]+}}
// CHECK-NEXT: main
// CHECK-NEXT: {{.*}}lines.cpp:27:{{[0-9]+}}
// CHECK-EMPTY:
// CHECK-NEXT: _Z8branchesPlPdb
// CHECK-NEXT: {{.*}}lines.cpp:20:{{[0-9]+}}
// CHECK-EMPTY:
// CHECK-NEXT: _Z8branchesPlPdb
// CHECK-NEXT: {{.*}}lines.cpp:22:{{[0-9]+}}

// PLAIN: {{_ZL9set_firstPl|set_first}}
// PLAIN-NEXT: {{.*}}lines.cpp:15:{{[0-9]+}}
// PLAIN: {{.*}}lines.cpp:20:{{[0-9]+}}
// PLAIN: {{.*}}lines.cpp:22:{{[0-9]+}}
