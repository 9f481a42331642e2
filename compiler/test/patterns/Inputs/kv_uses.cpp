// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Makes the sections of the key-value store be compiled.
#include <src/selective/kv_kernels.hpp>

bool use(kernels::btree::tree* in, kernels::word key) {
    return kernels::btree::insert(in, key, 32);
}
bool use(kernels::ctree::entry* in, kernels::word key) {
    return kernels::ctree::insert(in, key, 32);
}
bool use(kernels::rtree::tree* in, kernels::word key) {
    return kernels::rtree::insert(in, key, 32);
}
