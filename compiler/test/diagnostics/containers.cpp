// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Containers of the standard library with an allocator over hf_alloc compile into sections: their
// out-of-line throws end the process, and their hash policy is followed by name.
// RUN: %hf_clangxx -O2 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -fno-exceptions -c %s -o %t.o

// RUN: %hf_clangxx -O2 -Werror -stdlib=libc++ -DWITH_NODES -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -stdlib=libc++ -DWITH_NODES -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -stdlib=libc++ -std=c++23 -DWITH_NODES -mllvm -holdfast-engine=undo -c %s -o %t.o

// With bodies for what libstdc++ keeps in its shared library, those are sections as others.
// RUN: %hf_clangxx -O2 -Werror -DWITH_NODES -include holdfast/libstdcxx.hpp -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -DWITH_NODES -include holdfast/libstdcxx.hpp -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -std=c++23 -DWITH_NODES -include holdfast/libstdcxx.hpp -mllvm -holdfast-engine=undo -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -DWITH_NODES -include holdfast/libstdcxx.hpp -mllvm -holdfast-engine=redo -c %s -o %t.o
// list::sort links nodes to lists on the stack.
// RUN: not %hf_clangxx -O2 -DWITH_NODES -DWITH_SORT -include holdfast/libstdcxx.hpp -c %s -o %t.o 2>&1 | FileCheck %s --check-prefix=SORT
// SORT: error: address of a local variable is stored to memory that may outlive it; in 'std::{{.*}}list<{{.*}}>::sort()', reached from failure-atomic function 'sort(

// libstdc++'s trees and lists change their nodes in the library, where no log can be inserted.
// RUN: not %hf_clangxx -O2 -DWITH_NODES -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -DWITH_NODES -c %s -o %t.o 2>&1 | FileCheck %s
// CHECK-DAG: error: call of 'std::_Rb_tree_insert_and_rebalance{{.*}}', by which libstdc++'s containers change their nodes out of sight: include <holdfast/libstdcxx.hpp>, which has a body for it, build with -stdlib=libc++, whose containers are all in headers, or use a container of hf::structures; in {{.*}}failure-atomic function 'put(std::map
// CHECK-DAG: error: call of 'std::_Rb_tree_rebalance_for_erase{{.*}}', by which libstdc++'s containers{{.*}}failure-atomic function 'remove(std::map
// CHECK-DAG: error: call of 'std::__detail::_List_node_base::_M_hook{{.*}}', by which libstdc++'s containers{{.*}}failure-atomic function 'append(std::{{.*}}list
#include <holdfast/allocator.hpp>
#include <holdfast/txfunc.hpp>

#include <deque>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

template <class T> using pm_allocator = hf::allocator<T>;
using vector = std::vector<long, pm_allocator<long>>;
using string = std::basic_string<char, std::char_traits<char>, pm_allocator<char>>;
using entry = std::pair<const long, long>;
using hash_map =
    std::unordered_map<long, long, std::hash<long>, std::equal_to<>, pm_allocator<entry>>;
using list = std::list<long, pm_allocator<long>>;
using deque = std::deque<long, pm_allocator<long>>;
using set = std::set<long, std::less<>, pm_allocator<long>>;
using map = std::map<long, long, std::less<>, pm_allocator<entry>>;

HF_TXFUNC void append(vector* v, long x) noexcept { v->push_back(x); }
HF_TXFUNC void append(string* s, char c) noexcept { s->push_back(c); }
HF_TXFUNC void put(hash_map* m, long key, long value) noexcept { (*m)[key] = value; }
HF_TXFUNC void append(deque* d, long x) noexcept { d->push_back(x); }
#if defined(WITH_NODES)
HF_TXFUNC void put(map* m, long key, long value) noexcept { (*m)[key] = value; }
HF_TXFUNC void remove(map* m, long key) noexcept { m->erase(key); }
HF_TXFUNC void put(set* s, long key) noexcept { s->insert(key); }
HF_TXFUNC void append(list* l, long x) noexcept { l->push_back(x); }
#endif
#if defined(WITH_SORT)
HF_TXFUNC void sort(list* l) noexcept { l->sort(); }
#endif
