// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a section's end may throw: clang drops the handlers around calls of what it knows to throw nothing, and an
// exception would pass by them, and by the callers' destructors.
// RUN: %hf_clangxx -O1 -mllvm -holdfast-engine=redo -S -emit-llvm %s -o - | FileCheck %s
#include <holdfast/txfunc.hpp>

struct releases {
    long* p;
    ~releases();
};

HF_TXFUNC void called_behind(long* p) { *p += 1; }
HF_TXFUNC void called_before(long* p);
HF_TXFUNC void called_on_both_sides(long* p);
static void made_last(long* p);

// CHECK-LABEL: define {{.*}} @_Z13called_behindPl(
// CHECK: call void @hf_redo_commit()
// CHECK-LABEL: define {{.*}} @_Z6beforePl(
// CHECK: invoke {{.*}}@_Z13called_beforePl
long before(long* p) {
    releases r{p};
    try {
        called_before(p);
        called_on_both_sides(p);
        made_last(p);
    } catch (...) {
        return 1;
    }
    return 0;
}
HF_TXFUNC void called_before(long* p) { *p += 2; }
HF_TXFUNC void called_on_both_sides(long* p) { *p += 3; }
HF_TXFUNC static void made_last(long* p) { *p += 4; }

long behind(long* p) {
    releases r{p};
    try {
        called_behind(p);
        called_on_both_sides(p);
    } catch (...) {
        return 1;
    }
    return 0;
}
void plainly(long* p) { made_last(p); }

// CHECK-LABEL: define {{.*}} @_Z13called_beforePl(
// CHECK: call void @hf_redo_commit_or_throw()
// CHECK-LABEL: define {{.*}} @_Z20called_on_both_sidesPl(
// CHECK: call void @hf_redo_commit()
// CHECK-LABEL: define {{.*}} @_ZL9made_lastPl(
// CHECK: call void @hf_redo_commit_or_throw()
