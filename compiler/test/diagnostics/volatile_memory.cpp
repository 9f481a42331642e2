// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Volatile memory in a section that may run again: the message has the words of the source, the user's line, and the
// cure. An engine that re-executes nothing takes such memory, and warns where its address is stored to the pool.
// RUN: not %hf_clangxx -O2 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O2 -mllvm -holdfast-engine=redo -c %s -o %t.o 2>&1 | FileCheck --check-prefix=ONCE --implicit-check-not=re-exec --implicit-check-not="volatile {{allocation|memory}}" %s
// RUN: not %hf_clangxx -O0 -mllvm -holdfast-engine=redo -c %s -o %t.o 2>&1 | FileCheck --check-prefix=ONCE --implicit-check-not=re-exec --implicit-check-not="volatile {{allocation|memory}}" %s
#include <holdfast/txfunc.hpp>

#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

struct node {
    node* next;
    long value;
};

HF_TXFUNC void takes_one(node** p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+2]]:{{[0-9]+}}: error: volatile allocation by 'operator new': a crash takes that memory away, and not the pointers to it in the pool; use hf::make or hf_alloc, and in a container hf::allocator; in failure-atomic function 'takes_one(node**)'
    // ONCE-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: warning: address of memory outside of the pool, by 'operator new', or a number made of it, is stored to the pool: it is another in every process; use hf::make or hf_alloc, and in a container hf::allocator. A section that keeps it to its end is refused there with open_options::expert.check_pointers; in failure-atomic function 'takes_one(node**)'
    *p = new node{*p, 1};
}
HF_TXFUNC void takes_many(long** p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: volatile allocation by 'operator new[]': a crash
    *p = new long[7];
}
HF_TXFUNC void gives_back(node** p) noexcept {
    node* const old = *p;
    *p = old->next;
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: volatile memory given back by 'operator delete', which is not taken back with the section: use hf::destroy or hf_free for blocks of the pool, and in a container hf::allocator; in failure-atomic function 'gives_back(node**)'
    delete old;
}
HF_TXFUNC void takes_as_c_does(long** p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+2]]:{{[0-9]+}}: error: volatile allocation by 'malloc': a crash
    // ONCE-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: warning: address of memory outside of the pool, by 'malloc'
    *p = static_cast<long*>(std::malloc(64));
}
HF_TXFUNC void takes_aligned(long** p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: volatile allocation by 'aligned_alloc': a crash
    *p = static_cast<long*>(std::aligned_alloc(64, 64));
}
HF_TXFUNC void gives_back_as_c_does(long** p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: volatile memory given back by 'free'
    std::free(*p);
}
HF_TXFUNC void container(std::vector<long>* v) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: volatile allocation by 'operator new': {{.*}}'container({{.*}}, at {{.*}}:{{[0-9]+}}
    v->push_back(1);
}
HF_TXFUNC void prints(long* p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+2]]:{{[0-9]+}}: error: input or output by 'puts' would happen again if the section must be run again, and is not taken back with it: do it before the section or after it
    // ONCE-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: input or output by 'puts'
    *p = std::puts("counted");
}
HF_TXFUNC void rounds(long* p) noexcept {
    // CHECK-DAG: volatile_memory.cpp:[[@LINE+1]]:{{[0-9]+}}: error: access of the floating-point environment: set it before the section, which keeps it to its end
    *p = __builtin_flt_rounds();
}
