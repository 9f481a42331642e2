// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library's function that an unfit one was first to call: the place of its call by address is not looked for there.
// RUN: env MALLOC_PERTURB_=165 %hf_clangxx -O0 -mllvm -holdfast-engine=redo -S -emit-llvm %s -o - | FileCheck %s
// RUN: env MALLOC_PERTURB_=165 %hf_clangxx -O2 -mllvm -holdfast-engine=redo -c %s -o %t.o
#include <holdfast/txfunc.hpp>

#include <algorithm>
#include <cstdio>

using step = long (*)(long);
using reader = long (*)(const long*, step);

// CHECK: stl_algo.h:
// CHECK: hf_redo_callee
static long talks(const long* p, step by) {
    std::puts("unfit");
    long out[2];
    std::transform(p, p + 2, out, by);
    return out[0];
}
static long is_quiet(const long* p, step by) {
    long out[2];
    std::transform(p, p + 2, out, by);
    return out[1];
}
reader readers[] = {talks, is_quiet};

HF_TXFUNC void sum(long* p, reader how, step by) noexcept { p[0] += how(p, by); }
