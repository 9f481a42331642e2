// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indirect calls whose target the code around them shows.
#ifndef HOLDFAST_COMPILER_RESOLVECALLS_H
#define HOLDFAST_COMPILER_RESOLVECALLS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Makes direct calls of the indirect ones that the sections of 'Txfuncs' run,
/// where it is known what they may reach: all of it seen, if the others can be
/// dispatched.
void resolveCalls(llvm::ArrayRef<llvm::Function *> Txfuncs, bool CanDispatch,
                  llvm::FunctionAnalysisManager &FAM);

} // namespace holdfast

#endif
