// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Accesses that recovery can neither restore nor repeat.
// RUN: not %hf_clangxx -O2 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
#include <holdfast/txfunc.hpp>

#include <atomic>

HF_TXFUNC void reads_volatile(volatile long* v, long* p) noexcept {
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: volatile access
    *p = *v;
}

HF_TXFUNC void adds_atomically(long* p) noexcept {
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: atomic operation: take locks before calling the failure-atomic function; in failure-atomic function 'adds_atomically(long*)'
    __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
}
HF_TXFUNC void loads_atomically(long* p) noexcept {
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: atomic operation
    *p = __atomic_load_n(p + 1, __ATOMIC_ACQUIRE);
}
HF_TXFUNC void fences(long* p) noexcept {
    *p = 1;
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: memory fence
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

long counter = 4;
thread_local long mine = 5;
HF_TXFUNC void reads_global(long* p) noexcept {
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable 'counter'
    *p = counter;
}
HF_TXFUNC void writes_global(long* p) noexcept {
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: write to global variable 'counter'
    counter = *p;
}
HF_TXFUNC void reads_thread_local(long* p) noexcept {
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: thread-local variable 'mine'
    *p = mine;
}
[[gnu::noinline]] static long sum(const long* a) { return a[0]; }
HF_TXFUNC void passes_global(long* p) noexcept {
    // The optimiser may have moved the address into the helper.
    // CHECK-DAG: memory.cpp:{{[0-9]+}}:{{.*}}error: unpreserved volatile input: global variable 'counter'{{.*}}failure-atomic function 'passes_global(long*)'
    *p = sum(&counter);
}

[[gnu::noinline]] static void use(long* local) { *local += 1; }
HF_TXFUNC void stores_local(long** p) noexcept {
    long local = 3;
    // CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: address of a local variable is stored to memory that may outlive it
    *p = &local;
    use(&local);
}

HF_TXFUNC void preserves_late(long* p, const long* v) noexcept {
    *p = 1;
    // CHECK-DAG: {{(memory.cpp|txfunc.hpp):[0-9]+:.*}}error: hf_vlog_preserve may come after a store to persistent memory{{.*}}'preserves_late(long*, long const*)'
    *p += *hf::vlog_preserve(v);
}

// CHECK-DAG: memory.cpp:[[@LINE+1]]:{{.*}}error: failure-atomic function 'variadic(long*, ...)' takes variable arguments
HF_TXFUNC void variadic(long* p, ...) noexcept { *p = 1; }
