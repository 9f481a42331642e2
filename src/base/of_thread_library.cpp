// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A library that is unloaded (of_thread_test.cpp).
#include <base/of_thread.hpp>

namespace {
struct counter {
    int count = 0;
};
} // namespace

extern "C" int count_in_thread() { return ++hf::of_thread<counter>::get().count; }
