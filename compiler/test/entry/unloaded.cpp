// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may become part of a library that is unloaded takes back what it has registered, behind everything else;
// a program's own code need not.
// RUN: %hf_clangxx -O2 -fPIC -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O2 -fPIE -S -emit-llvm %s -o - | FileCheck --check-prefix=PROGRAM %s
// RUN: %hf_clangxx -O2 -fno-pic -S -emit-llvm %s -o - | FileCheck --check-prefix=PROGRAM %s
#include <holdfast/txfunc.hpp>

HF_TXFUNC void count(long* p) noexcept { *p += 1; }

// CHECK-DAG: @llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1000, ptr @hf_forget, ptr null }]
// CHECK-DAG: declare extern_weak void @hf_txfunc_forget(ptr)
// CHECK: define internal void @hf_forget()
// CHECK: call void @hf_txfunc_forget(ptr @_Z5countPl.hf_clobber)
// PROGRAM-NOT: hf_forget
