// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

// [bad]
struct shape { virtual double area() const noexcept { return 0; } };

HF_TXFUNC void add(shape** at) noexcept {
    *at = hf::make<shape>();          // error in a header: holds the address of its table
}
// [/bad]
