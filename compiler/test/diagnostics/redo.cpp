// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Engine redo keeps a section's stores elsewhere. So a library function that reads or writes to an unknown
// length does not get an address of PM.
// RUN: not %hf_clangxx -O1 -mllvm -holdfast-engine=redo -DERRORS -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -mllvm -holdfast-engine=redo -DERRORS -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: %hf_clangxx -O1 -mllvm -holdfast-engine=redo -c %s -o %t.o
// RUN: %hf_clangxx -O1 -DERRORS -c %s -o %t.o
#include <holdfast/txfunc.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct page {
    char text[64];
    int numbers[8];
    long number;
};

#ifdef ERRORS
HF_TXFUNC void prints(page* p) noexcept {
    // CHECK: redo.cpp:[[@LINE+1]]:5: error: call of 'snprintf' with the address of memory that may be persistent: {{.*}}, and the section keeps its stores elsewhere until its end; call it on a copy in a local variable; in failure-atomic function 'prints(page*)'
    std::snprintf(p->text, sizeof p->text, "%d", p->numbers[0]);
}
HF_TXFUNC void prints_a_string(page* p, char* into) noexcept {
    char local[64];
    p->number = 1;
    // CHECK: redo.cpp:[[@LINE+1]]:5: error: call of 'snprintf' with
    std::snprintf(local, sizeof local, "%s", p->text);
    std::strcpy(into, local);
}
HF_TXFUNC void copies_until(page* p, const char* from) noexcept {
    // CHECK: redo.cpp:[[@LINE+1]]:5: error: call of 'memccpy' with
    memccpy(p->text, from, ';', sizeof p->text);
}
HF_TXFUNC void appends_so_many(page* p, const char* from) noexcept {
    // CHECK: redo.cpp:[[@LINE+1]]:5: error: call of 'strncat' with
    std::strncat(p->text, from, 5);
}
static int by_value(const void* a, const void* b) {
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
HF_TXFUNC void sorts(page* p) noexcept {
    // CHECK: redo.cpp:[[@LINE+1]]:5: error: call of 'qsort' with
    std::qsort(p->numbers, 8, sizeof(int), by_value);
}
#else
// The cure.
HF_TXFUNC void through_locals(page* p) noexcept {
    char local[64], name[64];
    std::strcpy(name, p->text);
    std::snprintf(local, sizeof local, "%s %d", name, p->numbers[0]);
    std::strcpy(p->text, local);
    p->number = std::strtol(local, nullptr, 10);
}
HF_TXFUNC void known_extents(page* p) noexcept {
    p->number = long(std::strlen(p->text)) + std::atoi(p->text);
    char* behind = nullptr;
    p->number += std::strtol(p->text, &behind, 10) + (behind - p->text);
    p->number += std::memcmp(p->text, p->numbers, sizeof p->numbers);
    std::strcat(p->text, p->text + 32);
}
#endif
