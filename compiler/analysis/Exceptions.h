// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the destructor of an exception may do, which is run by whoever catches
// it: plain code, outside a section or in one.
#ifndef HOLDFAST_COMPILER_EXCEPTIONS_H
#define HOLDFAST_COMPILER_EXCEPTIONS_H

#include "llvm/IR/Function.h"

namespace holdfast {

/// Whether a destructor stores to its object and to locals only, and calls
/// nothing that could store elsewhere: library functions that destroy standard
/// exceptions and strings or give back memory, and functions of which the same is
/// true.
bool destroysOnlyItself(const llvm::Function &Destructor);

} // namespace holdfast

#endif
