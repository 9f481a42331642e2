// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions for other processors, chosen when the program runs: they are called where they may not be inlined,
// and the compiler makes code of them. After an error it makes none.
// RUN: %hf_clangxx -O0 -c %s -o %t.o
// RUN: %hf_clangxx -O2 -c %s -o %t.o
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=undo -c %s -o %t.o
// RUN: %hf_clangxx -O0 -mllvm -holdfast-engine=justdo -c %s -o %t.o
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=justdo -c %s -o %t.o
// RUN: %hf_clangxx -O2 -mllvm -holdfast-engine=ido -c %s -o %t.o
// RUN: %hf_clangxx -O0 -DBY_ADDRESS -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: %hf_clangxx -O2 -DBY_ADDRESS -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: not %hf_clangxx -O2 -DBY_ADDRESS -c %s -o %t.o 2>&1 | FileCheck %s --implicit-check-not=crash --implicit-check-not=backend
// RUN: not %hf_clangxx -O2 -DBY_ADDRESS -mllvm -holdfast-engine=justdo -c %s -o %t.o 2>&1 | FileCheck %s --implicit-check-not=crash --implicit-check-not=backend
// RUN: not %hf_clangxx -O2 -DPRESERVES -mllvm -holdfast-engine=justdo -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=PRESERVES
// RUN: %hf_clangxx -O2 -DCALLED -mllvm -holdfast-engine=redo -S -emit-llvm %s -o - | FileCheck %s --check-prefix=CALLED
#include <holdfast/txfunc.hpp>

#include <immintrin.h>

struct root {
    long sums[4];
    unsigned char bytes[32];
};
__attribute__((target("avx2"))) static void fast(root* r) {
    __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(r->bytes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(r->sums), _mm256_sad_epu8(v, _mm256_setzero_si256()));
}
static void slow(root* r) {
    for (int i = 0; i < 32; ++i) r->sums[i / 8] += r->bytes[i];
}

#if defined(BY_ADDRESS)
// CHECK: other_processors.cpp:[[@LINE+4]]:{{.*}}error: indirect call
HF_TXFUNC void sums(root* r, bool has_avx2, void (*then)(root*)) noexcept {
    if (has_avx2) fast(r);
    else slow(r);
    then(r);
}
#elif defined(PRESERVES)
__attribute__((target("avx2"))) static void record(root* r, const long* from) {
    r->sums[0] += *hf::vlog_preserve(from);
}
// PRESERVES: error: 'record(root*, long const*)' preserves bytes, and the compiler cannot inline it into the section that calls it
HF_TXFUNC void recorded(root* r, const long* from, bool has_avx2) noexcept {
    if (has_avx2) record(r, from);
}
#elif defined(CALLED)
// What the source wants called is called, beside an indirect call that is looked up.
__attribute__((noinline)) static void apart(root* r) { r->sums[1] += r->sums[0]; }
// CALLED: define internal void @{{.*}}called{{.*}}.hf_body(
// CALLED: call {{.*}}void @_ZL5apartP4root.hf(
HF_TXFUNC void called(root* r, void (*then)(root*)) noexcept {
    apart(r);
    then(r);
}
#else
struct step {
    virtual void go(root* r) const noexcept = 0;
};
struct first_step : step {
    void go(root* r) const noexcept override {
        r->bytes[0]++;
        fast(r);
    }
};
static void through(const step& s, root* r) { s.go(r); }
HF_TXFUNC void sums(root* r, bool has_avx2) noexcept {
    if (has_avx2) fast(r);
    else slow(r);
    if (has_avx2) through(first_step(), r);
}
#endif
