// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct page { char bytes[4096]; };

HF_TXFUNC void write(page* to, page from) noexcept {   // error: takes 4104 bytes of arguments, a section records at most 1024
    *to = from;
}
