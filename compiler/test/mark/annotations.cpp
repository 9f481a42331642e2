// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whatever can be annotated becomes failure-atomic: members, member templates, lambdas, inline and
// local functions; at every optimisation level, also what would have been inlined.
// RUN: %hf_clangxx -O2 -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O0 -S -emit-llvm %s -o - | FileCheck %s
#include <holdfast/txfunc.hpp>

struct account {
    long balance;
    HF_TXFUNC void deposit(long amount) noexcept { balance += amount; }
    template <class T> HF_TXFUNC void scale(T by) noexcept { balance *= by; }
};
HF_TXFUNC inline __attribute__((always_inline)) void forced(long* p) noexcept { *p += 1; }
HF_TXFUNC static void local(long* p) noexcept { *p += 1; }
template <class F> HF_TXFUNC void tx(long* p, F f) noexcept { f(p); }

void user(account* a, long* p) {
    a->deposit(1);
    a->scale(3);
    a->scale(3ul);
    forced(p);
    local(p);
    tx(p, [by = *p](long* q) { *q += by; });
    auto marked = [](long* q) HF_TXFUNC { *q += 5; };
    marked(p);
}
// Inline functions: one shared descriptor in the function's COMDAT group.
// CHECK-DAG: @_ZN7account7depositEl.hf_clobber = linkonce_odr hidden constant {{.*}}, comdat($_ZN7account7depositEl)
// CHECK-DAG: @_ZN7account5scaleIiEEvT_.hf_clobber = linkonce_odr hidden constant
// CHECK-DAG: @_ZN7account5scaleImEEvT_.hf_clobber = linkonce_odr hidden constant
// CHECK-DAG: @_Z6forcedPl.hf_clobber = linkonce_odr hidden constant
// CHECK-DAG: @_ZL5localPl.hf_clobber = internal constant
// CHECK-DAG: c"annotations.cpp;_ZL5localPl\00"
// CHECK-DAG: define internal void @{{.*}}_Z2txIZ4user{{.*}}.hf_body
// CHECK-DAG: define internal void @{{.*}}_ZZ4userP7accountPlENK3{{.*}}.hf_body
// CHECK-DAG: define internal void @_ZN7account7depositEl.hf_body({{.*}} comdat($_ZN7account7depositEl)
// CHECK-DAG: call void @_Z6forcedPl(

// One constructor per module registers them all, before ordinary constructors run.
// CHECK-DAG: @llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1000, ptr @hf_register, ptr null }]
// CHECK-DAG: call void @hf_txfunc_register(ptr @_ZN7account7depositEl.hf_clobber)
