// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <holdfast/txfunc.hpp>

#include <functional>

void somebody();
long use(const long*);

HF_TXFUNC void note(unsigned long* where) noexcept {
    long local = 3;
    where[0] = reinterpret_cast<unsigned long>(&local) >> 4;                  // error: address of a local variable, or a number made of it
    where[1] = std::hash<const long*>{}(&local) * 31;                         // error: address of a local variable, or a number made of it
    where[2] = reinterpret_cast<unsigned long>(&somebody);                    // error: address of function 'somebody()', or a number made of it
    where[8 + reinterpret_cast<unsigned long>(&local) % 7] += 1;              // error: whose place depends on the address of a local variable
}
