// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the closure of an hf::tx may not hold is an error at the line that calls it.
// RUN: not %hf_clangxx -O2 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=undo -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O3 -march=x86-64-v3 -c %s -o %t.o 2>&1 | FileCheck %s

// What the type shows is refused by every compiler.
// RUN: not %clangxx -DTYPES -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=TYPES
#include <holdfast/tx.hpp>

#include <string>

struct list {
    long head, count;
};
long counter;
void use(const void*);

#if !defined(TYPES)
void by_reference(const hf::pool& pool, list* l, long value) {
    // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: closure of hf::tx captures the address of a local variable, which a re-execution does not find: capture its value, or read it through hf::vlog_preserve
    hf::tx(pool, [&] { l->count += value; });
}
void pointer_to_local(const hf::pool& pool, list* l) {
    long steps[3] = {1, 2, 3};
    use(steps);
    const long* step = steps;
    // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: closure of hf::tx captures the address of a local variable
    hf::tx(pool, [=] { l->count += step[1]; });
}
void pointer_to_global(const hf::pool& pool, list* l) {
    // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: closure of hf::tx captures the address of global variable 'counter'
    hf::tx(pool, [l, c = &counter] { l->count += *c; });
}
void large(const hf::pool& pool, list* l, long a, long b, long c) {
    long sum = 0;
    // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: closure of hf::tx captures the address of a local variable
    hf::tx(pool, [=, &sum] { sum = l->count += a * b * c; });
    use(&sum);
}
void output(list* l, const hf_pool* pool) {
    long before;
    // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: closure of hf::tx captures the address of a local variable
    hf::tx(pool, [&before, l] { before = l->count++; });
    use(&before);
}
void uses_global(const hf::pool& pool, list* l) {
    hf::tx(pool, [l] {
        // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable 'counter'{{.*}} failure-atomic function 'uses_global(hf::pool const&, list*)::$_0'
        l->count = counter;
    });
}
HF_TXFUNC void nested(list* l, const hf::pool* pool) noexcept {
    // CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: hf::tx in a section: call the function itself, it joins the section that is open
    hf::tx(*pool, [l] { l->count++; });
}
struct wide {
    long words[200];
};
// CHECK-DAG: closures.cpp:[[@LINE+1]]:{{.*}}error: failure-atomic function 'too_large(wide, list*)' takes 1608 bytes of arguments, a section records at most 1024: pass a pointer into the pool, or use hf::vlog_preserve
HF_TXFUNC void too_large(wide w, list* l) noexcept { l->count += w.words[l->head]; }
#else
// TYPES-DAG: error: static assertion failed{{.*}}hf::tx: the closure is recorded as bytes and must be trivially copyable; keep strings and containers in the pool
void not_trivial(const hf::pool& pool, list* l, std::string s) {
    hf::tx(pool, [=] { l->count += long(s.size()); });
}
// TYPES-DAG: error: static assertion failed{{.*}}hf::tx: the result must be void or trivially copyable
void result(const hf::pool& pool) {
    hf::tx(pool, [] { return std::string("text"); });
}
struct wide {
    long words[128];
};
// TYPES-DAG: error: static assertion failed{{.*}}hf::tx: the closure is too large for a section's record
void too_large(const hf::pool& pool, list* l, wide w) {
    hf::tx(pool, [=] { l->count += w.words[3]; });
}
#endif
