// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sections that nobody has marked: functions that take locks of the pool.  JUSTDO §4
#ifndef HOLDFAST_COMPILER_LOCKEDFUNCTIONS_H
#define HOLDFAST_COMPILER_LOCKEDFUNCTIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"

namespace holdfast {

/// Returns the unmarked functions of the module that take a lock of the pool: by
/// Holdfast's own calls or by those of the standard library (std::unique_lock,
/// std::scoped_lock ...). A function of the library is not in the result, but its
/// caller is.
///
/// Requires: nothing is inlined yet.
llvm::SmallVector<llvm::Function *, 8> findLockedFunctions(llvm::Module &M);

} // namespace holdfast

#endif
