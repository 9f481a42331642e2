// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

#include <ctime>

struct entry { long stamp; };

// [bad]
HF_TXFUNC void touch(entry* e) noexcept {
    e->stamp = std::time(nullptr);    // error: nondeterministic call of 'time': call it before the section
}
// [/bad]
