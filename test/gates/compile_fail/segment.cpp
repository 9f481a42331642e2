// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

HF_TXFUNC void note(long* where) noexcept {
    *where = *reinterpret_cast<long __seg_fs*>(0);   // error: access relative to a segment register
}
