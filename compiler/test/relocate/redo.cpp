// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// In a section whose stores wait in a buffer, pointers are translated by the addresses that the source
// names: the buffer has them as the pool has them. What is looked at in memory, or copied there, is
// asked of the engine. The last pass leaves these functions alone, and the other form to itself.
// RUN: %hf_clangxx -O2 -mllvm -holdfast-relocatable -mllvm -holdfast-engine=redo -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O2 -mllvm -holdfast-relocatable -mllvm -holdfast-engine=auto -S -emit-llvm %s -o - | FileCheck %s --check-prefixes=CHECK,AUTO
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=auto -S -emit-llvm %s -o - | FileCheck %s --check-prefix=PLAIN
// PLAIN-NOT: relocated
#include <holdfast/txfunc.hpp>

#include <cstring>
#include <new>

struct list {
  list *next;
  list *last;
};
struct three {
  long number;
  list *at;
  long other;
};
union either {
  double number;
  list *at;
};
HF_PURE three made(list *at) noexcept;

// CHECK-LABEL: define internal void @_Z4linkP4listS0_.hf_body(
// CHECK: call ptr @hf_relocated_store(ptr %[[IN:[0-9]+]], ptr %[[FRESH:[0-9]+]],
// CHECK: %[[STORED:[0-9]+]] = phi ptr [ %[[FRESH]],
// CHECK-NEXT: %[[PLACE:[0-9]+]] = call ptr @hf_redo_write(ptr %[[IN]], i64 8)
// CHECK-NEXT: store ptr %[[STORED]], ptr %[[PLACE]],
// What is loaded from the buffer is translated once.
// CHECK: %[[FOUND:[0-9]+]] = load ptr, ptr %{{[0-9]+}}, align 1
// CHECK: call ptr @hf_relocated_load(ptr %[[FROM:[0-9]+]], ptr %[[FOUND]],
// CHECK-NOT: hf_relocated
// CHECK: %[[LAST:[0-9]+]] = phi ptr [ %[[FOUND]],
// CHECK: call ptr @hf_relocated_store(ptr %{{[0-9]+}}, ptr %[[LAST]],
// CHECK: ret void
HF_TXFUNC void link(list *in, list *fresh) {
  in->next = fresh;
  in->last = fresh->last;
}

// CHECK-LABEL: define internal void @_Z4copyPvPKvm.hf_body(
// CHECK: call void @hf_redo_relocated_copy(
// CHECK: call void @hf_redo_copy(
// CHECK: ret void
HF_TXFUNC void copy(void *to, const void *from, unsigned long bytes) { std::memcpy(to, from, bytes); }

// CHECK-LABEL: define internal void @_Z5linksPP4listPKS0_m.hf_body(
// CHECK: call void @hf_redo_relocated_copy_pointers(
// CHECK: call void @hf_redo_copy(
// CHECK: ret void
HF_TXFUNC void links(list **__restrict to, list *const *from, unsigned long count) {
  for (unsigned long i = 0; i < count; ++i)
    to[i] = from[i];
}

// CHECK-LABEL: define internal noundef i32 @_Z7comparePlPKlm.hf_body(
// CHECK: call void @hf_redo_relocated_raw_load(
// CHECK: call i32 @memcmp(
// CHECK: ret i32
HF_TXFUNC int compare(long *with, const long *from, unsigned long bytes) {
  *with = 1;
  return std::memcmp(with, from, bytes);
}

// A struct that no instance stores goes by way of a local variable, and from there by its type.
// CHECK-LABEL: define internal void @_Z4makeP5threeP4list.hf_body(
// CHECK: call void @_Z4madeP4list(ptr {{.*}}%[[LOCAL:[0-9]+]], ptr
// CHECK: call ptr @hf_relocated_store(
// CHECK: call ptr @hf_redo_write(
// CHECK: ret void
HF_TXFUNC void make(three *to, list *at) { ::new (static_cast<void *>(to)) three(made(at)); }
// A number is looked at as well: a pointer may share a union with it.
// CHECK-LABEL: define internal void @_Z3putP6eitherS0_P4listd.hf_body(
// CHECK: call void @hf_relocated_store_word(
// CHECK: load double, ptr %{{[0-9]+}}, align 1
// CHECK: call void @hf_redo_relocated_raw_load(ptr %{{[0-9]+}}, i64 8,
// CHECK: call void @hf_relocated_store_word(
// CHECK: call ptr @hf_redo_write(
// CHECK: ret void
HF_TXFUNC void put(either *to, either *from, list *at, double number) {
  to->number = number;
  either made = *from; // may have waited
  if (number > 0)
    made.number *= number;
  else
    made.at = at;
  *to = made;
}
// CHECK-LABEL: define internal void @_Z4linkP4listS0_.hf(

// AUTO-LABEL: define internal void @_Z4linkP4listS0_.hf_body.{{[0-9]+}}(
// AUTO: call void @hf_undo_log(
// AUTO: call ptr @hf_relocated_store(
// AUTO: ret void
