// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A struct that is copied moves its pointers as pointers; what its type does not show is checked.
// RUN: %hf_clangxx -O2 -mllvm -holdfast-relocatable -mllvm -holdfast-engine=none -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O0 -mllvm -holdfast-relocatable -mllvm -holdfast-engine=none -S -emit-llvm %s -o - | FileCheck %s --check-prefix=O0
// RUN: not %hf_clangxx -O2 -flto -mllvm -holdfast-relocatable -c %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=LTO
// LTO: -holdfast-relocatable does not work with link-time optimisation

struct node {
  long key;
  node *next;
  long value[4];
};

// CHECK: c"{{.*}}structs.cpp:[[@LINE+9]]\00"

// CHECK-LABEL: define {{.*}}void @copy_node(
// CHECK-DAG: call void @hf_relocated_copy(ptr {{[^,]*}}, ptr {{[^,]*}}, i64 32,
// CHECK-DAG: call ptr @hf_relocated_load(
// CHECK-DAG: call ptr @hf_relocated_store(
// CHECK: ret void
// O0-LABEL: define {{.*}}void @copy_node(
// O0: call void @hf_relocated_copy(ptr {{[^,]*}}, ptr {{[^,]*}}, i64 48,
extern "C" void copy_node(node *to, const node *from) { *to = *from; }

// CHECK-LABEL: define {{.*}}void @copy_links(
// CHECK: call void @hf_relocated_copy_pointers(
// CHECK: ret void
extern "C" void copy_links(node **__restrict to, node *const *from, unsigned long count) {
  for (unsigned long i = 0; i < count; ++i)
    to[i] = from[i];
}
