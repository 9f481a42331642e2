// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What sections of one file call in another: across_files_elsewhere.cpp has the bodies.
#pragma once

#include <holdfast/txfunc.hpp>

namespace language_test {

struct purse {
    long coins;
    long changes;
    long* newest; ///< a block of what was taken last
};

struct purses {
    purse one, other;
};

// [declared]
HF_TXFUNC void take(purse* from, long coins,
                    bool dies = false); // a section, or part of the caller's
HF_SECTION long worth(const purse* of); // a part of sections alone
// [/declared]
HF_SECTION void split(long coins, long* first, long* second) noexcept;
HF_SECTION long count_down(purse* of, long from);
HF_TXFUNC void refuse(purse* of);
/// In the other file: calls count_down of that file, and comes back here.
HF_SECTION long count_down_here(purse* of, long from);

template <class T> struct keeper {
    HF_SECTION static void keep(T* at, T what);
};
template <class T> void keeper<T>::keep(T* at, T what) { *at += what; }
extern template struct keeper<long>;

} // namespace language_test
