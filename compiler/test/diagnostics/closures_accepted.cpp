// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Closures that look like what closures.cpp refuses, and are right.
// RUN: %hf_clangxx -O2 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O1 -Werror -stdlib=libc++ -std=c++23 -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -mllvm -holdfast-engine=undo -c %s -o %t.o
// RUN: %clangxx -O2 -Werror -c %s -o %t.o
#include <holdfast/tx.hpp>

struct list {
    long head, count;
};
void use(const void*);

void preserved(const hf::pool& pool, list* l) {
    long steps[3] = {1, 2, 3};
    use(steps);
    const long* step = steps;
    hf::tx(pool, [=] { l->count += hf::vlog_preserve(step, 3)[1]; });
}
void by_value(const hf::pool& pool, list* l, list* other, bool which) {
    list local = *l;
    list* at = &local;
    use(at);
    at = which ? l : other;
    hf::tx(pool, [=] { at->count += local.count; });
}
