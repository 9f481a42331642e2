// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Helpers that call each other from two places each: put into their callers they would be two to
// the power of LEVELS copies. For engines justdo and ido, where the larger ones keep frames of
// their own.
#include "oracle.hpp"

using oracle::at;

namespace {

#ifndef LEVELS
#define LEVELS 7 // whose frames a thread of a small pool has room for
#endif

template <int Level> __attribute__((noinline)) long descend(long* p, long x, const char* text) {
    const long before = p[Level % 5];
    p[Level % 5] += x;
    long kept[2] = {before, x};
    if constexpr (Level != 0) {
        const long below = (before & 1) != 0 ? descend<Level - 1>(p, x + 1, text)
                                             : descend<Level - 1>(p, x ^ Level, text + 1);
        kept[below & 1] += below;
    }
    p[5 + Level % 3] ^= kept[0];
    return kept[1] + p[Level % 5] + text[0];
}
HF_TXFUNC void by_levels(long* p) noexcept {
    p[9] = descend<LEVELS>(p, p[9] + 1, "abcdefghijklmnopqrstuvwxyz");
    p[10] += p[9];
}
SCENARIO(
    by_levels,
    [] {
        for (int i = 0; i < 11; ++i) at<long>(0)[i] = 7 * i + i * i;
    },
    [] { by_levels(at<long>(0)); })

} // namespace
