// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program under a checker that prints: everything that touches the watched bytes, in order, and
// nothing else; the same with optimisation and without.
// RUN: %clangxx -O1 -c %S/Inputs/print_reports.cpp -o %t.checker.o
// RUN: %hf_clangxx -O2 -mllvm -holdfast-trace %s %t.checker.o -o %t.O2
// RUN: %t.O2 | FileCheck %s --match-full-lines
// RUN: %hf_clangxx -O0 -mllvm -holdfast-trace %s %t.checker.o -o %t.O0
// RUN: %t.O0 | FileCheck %s --match-full-lines
// RUN: %hf_clangxx -O2 -mllvm -holdfast-trace -mllvm -holdfast-engine=none %s %t.checker.o -o %t.none
// RUN: %t.none | FileCheck %s --match-full-lines --check-prefix=NONE
// RUN: %hf_clangxx -O2 %s %t.checker.o -o %t.untraced
// RUN: %t.untraced | FileCheck %s --check-prefix=UNTRACED

// Link-time optimisation would analyse sections after they have been traced.
// RUN: not %hf_clangxx -O2 -flto=full -mllvm -holdfast-trace -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=LTO
// LTO: error: -holdfast-trace does not work with link-time optimisation

// UNTRACED-NOT: {{load|store|rmw|fence}}
// UNTRACED: log

// Without an engine the section is a function.
// NONE-NOT: begin
// NONE: section
// NONE-NEXT: load +0 8
// NONE-NEXT: store +0 8
// NONE-NEXT:   now 6
// NONE-NEXT: store +8 8
// NONE-NEXT:   now 9
// NONE-NEXT: atomic
#include "Inputs/print_reports.hpp"

#include <holdfast/txfunc.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct record {
    long count;
    long last;
    std::atomic<int> state;
    char text[12];
};

// A template and a helper: copied into the section, and traced there.
template <class T> void increment(T& number) noexcept { number += 1; }

HF_TXFUNC void add(record* r, long value) noexcept {
    increment(r->count);
    r->last = value;
}

__attribute__((disable_sanitizer_instrumentation)) void untraced(record* r) { r->last = 1; }

void ranges(record* r);
void strings(record* r);

int main() {
    auto* const r = static_cast<record*>(std::malloc(3 * sizeof(record)));
    std::memset(static_cast<void*>(r), 5, 3 * sizeof(record));
    watch(r + 1, sizeof(record));
    r[1].count = 5;
    // CHECK: store +0 8
    // CHECK-NEXT:   now 5

    std::puts("section");
    add(r + 1, 9);
    // CHECK-NEXT: section
    // CHECK-NEXT: begin
    // CHECK-NEXT: load +0 8
    // CHECK-NEXT: log +0 8
    // CHECK-NEXT: store +0 8
    // CHECK-NEXT:   now 6
    // CHECK-NEXT: {{note|log}} +8 8
    // CHECK-NEXT: store +8 8
    // CHECK-NEXT:   now 9
    // CHECK-NEXT: commit

    std::puts("atomic");
    r[1].state.store(1, std::memory_order_relaxed);
    r[1].state.store(2);
    r[1].state.fetch_add(3);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    // CHECK-NEXT: atomic
    // CHECK-NEXT: store +16 4
    // CHECK-NEXT:   now 1
    // CHECK-NEXT: rmw +16 4
    // CHECK-NEXT: load +16 4
    // CHECK-NEXT: rmw +16 4
    // CHECK-NEXT: fence

    // Outside, on either side; local; global; not to be traced.
    std::puts("elsewhere");
    static long global = 0;
    long local[4] = {1, 2, 3, 4};
    global = local[r[0].count & 3];
    r[2].last = global;
    untraced(r + 1);
    // CHECK-NEXT: elsewhere

    ranges(r);
    strings(r);
    std::free(r);
}

void ranges(record* r) {
    // From before the watched bytes to beyond them, and up to their edges.
    std::puts("ranges");
    volatile unsigned long whole = 3 * sizeof(record), one = sizeof(record);
    std::memset(static_cast<void*>(r), 7, whole);
    std::memset(static_cast<void*>(r), 7, one);
    std::memset(static_cast<void*>(r + 2), 7, one);
    std::memcpy(static_cast<void*>(r + 2), static_cast<void*>(r + 1), one);
    // CHECK-NEXT: ranges
    // CHECK-NEXT: store +-32 96
    // CHECK-NEXT:   now 7
    // CHECK-NEXT: load +0 32
}

void strings(record* r) {
    std::puts("strings");
    std::strcpy(r[1].text, r[0].last != 0 ? "ab" : "abc");
    volatile unsigned long length = std::strlen(r[1].text);
    // CHECK-NEXT: strings
    // CHECK-NEXT: store +20 3
    // CHECK-NEXT:   now 97
    // CHECK-NEXT: load +20 1
    // CHECK-NEXT: load +21 1
    // CHECK-NEXT: load +22 1

    std::puts("end");
    watch(nullptr, 0);
    r[1].last = long(length);
    std::printf("sum %ld\n", r[1].last);
    // CHECK-NEXT: end
    // CHECK-NEXT: sum 2
}
