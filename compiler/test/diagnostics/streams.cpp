// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A string stream is one mistake: one error, which names the standard's class.
// RUN: not %hf_clangxx -O2 -mllvm -holdfast-engine=auto -c %s -o %t.o 2>&1 | FileCheck %s
// RUN: not %hf_clangxx -O0 -mllvm -holdfast-engine=auto -c %s -o %t.o 2>&1 | FileCheck %s
#include <holdfast/txfunc.hpp>

#include <cstring>
#include <sstream>
#include <string>

HF_TXFUNC void formats(char* text, long n) {
    // CHECK: streams.cpp:[[@LINE+1]]:{{.*}}error: std::ostringstream: the library formats by a locale, out of sight; append to a std::string (std::to_string, std::to_chars){{.*}} in failure-atomic function 'formats(char*, long)'
    std::ostringstream out;
    out << "n = " << n << ", half of it " << 0.5 * double(n);
    const std::string made = out.str();
    for (char c : made) *text++ = c;
}
// CHECK-NOT: error:
// CHECK: 1 error generated
