// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A section with an indirect call is filled with what it calls, up to a size. The other calls stay.
// RUN: %hf_clangxx -O1 -mllvm -holdfast-engine=auto -S -emit-llvm %s -o - | FileCheck %s
#include <holdfast/txfunc.hpp>

#define TEN(text) text text text text text text text text text text

unsigned long large(unsigned long a, unsigned long b) {
    TEN(TEN(TEN(a = a * a ^ b; b += a >> 7;)))
    return a;
}

// CHECK-LABEL: define internal void @{{.*}}calls_often{{.*}}.hf_body(
// CHECK-NOT: call {{.*}}large
// CHECK: mul i64
// CHECK: call {{.*}}@{{.*}}large{{.*}}.hf(
// CHECK: call {{.*}}@{{.*}}large{{.*}}.hf(
// CHECK: {{^}}}
HF_TXFUNC void calls_often(unsigned long* at, void (*next)(unsigned long*)) {
    TEN(TEN(*at = large(at[0], at[1]); ++at;))
    next(at);
}
