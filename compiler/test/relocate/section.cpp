// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A section built relocatable says so, and its instrumented body is what is translated.
// RUN: %hf_clangxx -O2 -mllvm -holdfast-relocatable -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O2 -S -emit-llvm %s -o - | FileCheck %s --check-prefix=PLAIN
#include <holdfast/txfunc.hpp>

struct list {
  list *next;
};
HF_TXFUNC void link(list *in, list *fresh) noexcept { in->next = fresh; }

// CHECK: hf_clobber = {{.*}} { i32 -2147483391, i32 16,
// PLAIN: hf_clobber = {{.*}} { i32 257, i32 16,
// CHECK: call void @hf_clobber_note(ptr %[[IN:.*]], i64 8)
// CHECK: call ptr @hf_relocated_store(ptr %[[IN]],
// PLAIN-NOT: hf_relocated
