// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is wrong inside a library's header is shown where the user's code leads there: inlined, or by calls.
// RUN: not %hf_clangxx -O2 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O2 -stdlib=libc++ -DTHROWS -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=THROWS
// RUN: not %hf_clangxx -O0 -stdlib=libc++ -DTHROWS -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=THROWS
#include <holdfast/allocator.hpp>
#include <holdfast/txfunc.hpp>

#include <map>
#include <vector>

#if !defined(THROWS)
using map = std::map<long, long, std::less<>, hf::allocator<std::pair<const long, long>>>;

HF_TXFUNC void put(map* m, long key, long value) noexcept {
    // CHECK: users_line.cpp:[[@LINE+1]]:{{.*}}error: call of 'std::_Rb_tree_insert_and_rebalance{{.*}}, at {{.*}}:{{[0-9]+}}
    (*m)[key] = value;
}
#else
// Its copies may throw, so the vector undoes what it has done, which a section of engine clobber cannot.
struct loud {
    long value;
    explicit loud(long v) : value(v) {}
    loud(const loud& from) : value(from.value) {
        if (value < 0) throw 1;
    }
};
using vector = std::vector<loud, hf::allocator<loud>>;

HF_TXFUNC void append(vector* v, long x) noexcept {
    // THROWS: users_line.cpp:{{[0-9]+}}:{{.*}}error: exception
    v->emplace_back(x);
}
#endif
