// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

struct record { long count; char text[16]; };

// [bad]
HF_TXFUNC void write(record* r, const char* text) noexcept {
    r->count += 1;
    const char* kept = hf::vlog_preserve(text, 16);   // error in a header: hf_vlog_preserve may come after a store
    for (int i = 0; i < 16; ++i) r->text[i] = kept[i];
}
// [/bad]
