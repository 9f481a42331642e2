// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies of a helper may add a bounded number of instructions to sections. A larger helper, and one with large locals, has a frame of its own.
// RUN: %hf_clangxx -O2 -I%S/../oracle -mllvm -holdfast-engine=justdo -DLEVELS=14 %source_dir/test/attacks/stepping/large.cpp -S -emit-llvm -o - | FileCheck %s --check-prefix=LEVELS
// RUN: %hf_clangxx -O2 -I%S/../oracle -mllvm -holdfast-engine=justdo -DLEVELS=14 %source_dir/test/attacks/stepping/large.cpp -S -emit-llvm -o %t.ll
// RUN: grep -c 'call void @hf_justdo_store' %t.ll | FileCheck %s --check-prefix=COUNT
// COUNT: {{^[1-9]?[0-9]?[0-9]$}}
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=justdo %s -S -emit-llvm -o - | FileCheck %s
// A small helper has no frame; the larger ones have.
// LEVELS: @{{.*}}by_levels{{.*}}.hf_justdo = {{.*}}constant
// LEVELS: @{{.*}}descendILi{{[1-9][0-9]*}}E{{.*}}.hf_justdo = {{.*}}constant
// LEVELS-NOT: @{{.*}}descendILi0E{{.*}}.hf_justdo = {{.*}}constant
#include <holdfast/txfunc.hpp>

struct table {
    long words[2500];
};
// Two of them are more than a frame may have.
__attribute__((noinline)) static long sorted(table* t, long key) {
    long kept[2500];
    for (long i = 0; i < 2500; ++i) kept[i] = t->words[(i * key) % 2500];
    for (long i = 0; i < 2500; ++i) t->words[i] += kept[kept[i] & 2047];
    return kept[key & 2047];
}
__attribute__((noinline)) static long mixed(table* t, long key) {
    long kept[2500];
    for (long i = 0; i < 2500; ++i) kept[i] = t->words[(i + key) % 2500];
    for (long i = 0; i < 2500; ++i) t->words[i] ^= kept[kept[i] & 1023];
    return kept[key & 1023];
}
// CHECK-DAG: @{{.*}}sorted{{.*}}.hf_justdo = {{.*}}constant
// CHECK-DAG: @{{.*}}mixed{{.*}}.hf_justdo = {{.*}}constant
HF_TXFUNC void works_with_both(table* t, long key) noexcept {
    t->words[0] += sorted(t, key);
    t->words[1] += mixed(t, key);
}
