// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A local text of the standard library in a section that never runs again, at every optimisation level. Without
// optimisation clang leaves the constructors of std::allocator<char>, which is empty, to the shared library. With it
// libstdc++ 16 keeps more there, unless its assertions are on.
// RUN: %hf_clangxx -O0 -Werror -mllvm -holdfast-engine=auto -c %s -o %t.o
// RUN: %hf_clangxx -O0 -Werror -mllvm -holdfast-engine=undo -c %s -o %t.o
// RUN: %hf_clangxx -O2 -Werror -D_GLIBCXX_ASSERTIONS -mllvm -holdfast-engine=auto -c %s -o %t.o
#include <holdfast/txfunc.hpp>

#include <cstring>
#include <string>

struct record {
    char text[64];
};

HF_TXFUNC void write(record* r, const char* name, long number) {
    std::string text = std::string{name} + ", number " + std::to_string(number);
    text.resize(63);
    std::memcpy(r->text, text.c_str(), 64);
}
