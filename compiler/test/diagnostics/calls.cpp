// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calls that cannot be re-executed are errors where they stand.
// RUN: not %hf_clangxx -O2 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
#include <holdfast/lock.hpp>
#include <holdfast/txfunc.hpp>

#include <cstdio>
#include <cstdlib>
#include <csetjmp>
#include <ctime>
#include <pthread.h>

void elsewhere(long* p);
[[gnu::noinline]] static void helper(long* p) {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: call of 'elsewhere(long*)', whose body is not visible here{{.*}} in 'helper(long*)', reached from failure-atomic function 'calls_unknown(long*)'
    elsewhere(p);
}
HF_TXFUNC void calls_unknown(long* p) noexcept { helper(p); }

HF_TXFUNC void prints(long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: input or output by '{{printf|putchar|puts}}'{{.*}} in failure-atomic function 'prints(long*)'
    std::printf("%ld\n", *p);
}

HF_TXFUNC void calls_indirect(long* p, void (*f)(long*)) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: indirect call: what it reaches cannot be checked or logged; make the function a template argument
    f(p);
}

struct shape {
    virtual long area() const noexcept = 0;
};
HF_TXFUNC void calls_virtual(shape* s, long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: virtual call that is not resolved here: make the class or the function final, name the class (object.type::function()), keep alternatives in a std::variant, or use engine auto; in failure-atomic function 'calls_virtual
    *p = s->area();
}

HF_TXFUNC void takes_time(long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: nondeterministic call of 'time'
    *p = std::time(nullptr);
}
HF_TXFUNC void throws_dice(int* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: nondeterministic call of 'rand'
    *p = std::rand();
}
HF_TXFUNC void counts_cycles(unsigned long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: nondeterministic {{.*}}rdtsc
    *p = __builtin_ia32_rdtsc();
}
HF_TXFUNC void reads_counter(unsigned long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: nondeterministic read of a machine counter
    *p = __builtin_readcyclecounter();
}

HF_TXFUNC void locks(pthread_mutex_t* m, long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: synchronisation by 'pthread_mutex_lock': take locks before calling the failure-atomic function
    pthread_mutex_lock(m);
    *p += 1;
}

HF_TXFUNC void jumps(jmp_buf* where, long* p) noexcept {
    *p = 1;
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: non-local jump 'longjmp'
    std::longjmp(*where, 1);
}

HF_TXFUNC void assembles(long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: inline assembly
    asm volatile("incq %0" : "+m"(*p));
}

[[gnu::weak]] void replaceable(long* p) { *p = 1; }
HF_TXFUNC void calls_weak(long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: call of 'replaceable(long*)', which is weak
    replaceable(p);
}

HF_TXFUNC void takes_pool_lock(hf::mutex* lock, long* p) noexcept {
    // CHECK-DAG: calls.cpp:[[@LINE+1]]:{{.*}}error: synchronisation by 'hf::shared_mutex::lock()': take locks before calling
    lock->lock();
    *p = 1;
    lock->unlock();
}
