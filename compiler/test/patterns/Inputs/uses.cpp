// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes the kernels' sections be compiled.
#include <src/selective/kernels.hpp>

bool use(kernels::hashtable::table* in, kernels::word key) {
    return kernels::hashtable::create(in) && kernels::hashtable::insert(in, key, 32);
}
bool use(kernels::rbtree::tree* in, kernels::word key) {
    return kernels::rbtree::insert(in, key, 32);
}
bool use(kernels::heap::all* in, kernels::word key) {
    return kernels::heap::create(in) && kernels::heap::insert(in, key, 32);
}
bool use(kernels::avl::tree* in, kernels::word key) { return kernels::avl::insert(in, key, 32); }
