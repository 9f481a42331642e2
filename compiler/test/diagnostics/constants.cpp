// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants are inputs that need no record only where the version of a section covers what they hold:
// not those whose value another file gives, at compile time or when the program starts, nor those
// that lead to variables.
// RUN: not %hf_clangxx -O2 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O1 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: %hf_clangxx -DACCEPTED -O2 -c %s -o %t.o
// RUN: %hf_clangxx -DACCEPTED -O0 -c %s -o %t.o
#include <holdfast/txfunc.hpp>

extern const long limit;
extern const long sizes[];
long now();
long counter = 4;
static long mine[2] = {1, 2};

#if !defined(ACCEPTED)

HF_TXFUNC void reads_declared(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: constant 'limit' has its value elsewhere: {{.*}}; in failure-atomic function 'reads_declared(long*)'
    *p = limit;
}
HF_TXFUNC void reads_table(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: constant 'sizes' has its value elsewhere
    *p = sizes[*p & 3];
}
// Initialised here, when the program starts.
const long started = now();
HF_TXFUNC void reads_started(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable 'started'
    *p = started;
}
__attribute__((weak)) extern const long replaced = 5;
HF_TXFUNC void reads_weak(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: constant 'replaced' has its value elsewhere
    *p = replaced;
}

static long* const table[] = {&mine[0], &counter};
HF_TXFUNC void reads_through(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable '{{mine|counter}}'{{.*}}'reads_through(long*)'
    *p = *table[*p & 1];
}
HF_TXFUNC void writes_through(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable '{{mine|counter}}'{{.*}}'writes_through(long*)'
    *table[*p & 1] = 5;
}
// Two steps away.
struct kind {
    const char* name;
    long* const* at;
};
static const kind kinds[] = {{"a", table}, {"b", nullptr}};
HF_TXFUNC void reads_far(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable '{{mine|counter}}'{{.*}}'reads_far(long*)'
    *p = *kinds[*p & 1].at[0];
}

extern "C" long plain = 3;
extern long also __attribute__((alias("plain")));
HF_TXFUNC void reads_alias(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: unpreserved volatile input: global variable 'plain'{{.*}}'reads_alias(long*)'
    *p = also;
}
HF_TXFUNC void writes_alias(long* p) noexcept {
    // CHECK-DAG: constants.cpp:[[@LINE+1]]:{{.*}}error: write to global variable 'plain'
    also = *p;
}

#else

// Whatever it is, hf::vlog_preserve records it.
HF_TXFUNC void preserves(long* p) noexcept {
    const long* most = hf::vlog_preserve(&limit);
    const long* now = hf::vlog_preserve(&counter);
    *p += *most + *now;
}
// Constants through constants, and functions and types by their tables.
static const long few[] = {1, 2, 3}, many[] = {4, 5, 6};
static const long* const both[] = {few, many};
inline constexpr long shared[] = {7, 8, 9};
struct shape {
    virtual long area() const noexcept { return 3; }
};
struct square final : shape {
    long side;
    explicit square(long side) noexcept : side(side) {}
    long area() const noexcept override { return side * side; }
};
HF_TXFUNC void reads_constants(long* p) noexcept {
    square s(*p & 7);
    *p = both[*p & 1][1] + shared[*p & 1] + "abc"[*p & 1] + s.area();
}

#endif
