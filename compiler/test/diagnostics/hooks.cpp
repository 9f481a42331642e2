// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hooks of -finstrument-functions, and counters of profiles, are no part of a section.
// RUN: %hf_clangxx -O2 -Werror -finstrument-functions -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O0 -Werror -finstrument-functions -S -emit-llvm %s -o - | FileCheck %s
// RUN: %hf_clangxx -O2 -Werror -fprofile-generate -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -mllvm -holdfast-engine=justdo -finstrument-functions -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -mllvm -holdfast-engine=auto -finstrument-functions -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -mllvm -holdfast-engine=auto -fprofile-generate -c %s -o %t.o
#include <holdfast/txfunc.hpp>

#include <cstring>

struct list {
    long count;
    char name[32];
};
[[gnu::noinline]] static long square(long n) { return n * n; }
// CHECK: define internal void @_Z4pushP4listm.hf_body(
// CHECK: call void @__cyg_profile_func_enter(
// CHECK: call void @__cyg_profile_func_exit(
HF_TXFUNC void push(list* l, unsigned long n) noexcept {
    l->count += square(l->count);
    std::memcpy(l->name, "a name of thirty letters or so", n % 30);
}
