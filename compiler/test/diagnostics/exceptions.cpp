// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A section can only go forward: no throw, no handler that would continue after one.
// RUN: not %hf_clangxx -O1 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
#include <holdfast/txfunc.hpp>

#include <vector>

HF_TXFUNC void throws(long* p) {
    // CHECK-DAG: exceptions.cpp:[[@LINE+1]]:{{.*}}error: exception handling ('__cxa_throw')
    if (*p == 0) throw 1;
    *p = 2;
}

struct fixed {
    long values[4];
    long& at(unsigned long i) {
        if (i >= 4) std::__throw_out_of_range("fixed");
        return values[i];
    }
};
HF_TXFUNC void handles(fixed* f, unsigned long i) {
    try {
        // CHECK-DAG: exceptions.cpp:{{[0-9]+}}:{{.*}}error: exception handler in a section
        f->at(i) = 1;
    } catch (...) {
        f->values[0] = 2;
    }
}
