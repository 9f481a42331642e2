// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/alloc.hpp>
#include <holdfast/txfunc.hpp>

#include <new>

struct shape {
    long side = 0;
    virtual long area() const noexcept { return side * side; }
};

HF_TXFUNC void put(void* at) noexcept {
    ::new (at) shape;                 // error in a header: address of a virtual table
}
