// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the destructor of an exception may do. The code that catches the
// exception runs it: plain code, outside a section or in one.
#ifndef HOLDFAST_COMPILER_EXCEPTIONS_H
#define HOLDFAST_COMPILER_EXCEPTIONS_H

#include "llvm/IR/Function.h"

namespace holdfast {

/// Whether a destructor stores only to its object and to locals. It may call
/// library functions that destroy standard exceptions and strings or give back
/// memory, and functions that store no further than this one.
bool destroysOnlyItself(const llvm::Function &Destructor);

} // namespace holdfast

#endif
