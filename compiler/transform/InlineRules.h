// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What may be put into what: the rules of LLVM's own inliner, cost aside.
#ifndef HOLDFAST_COMPILER_INLINERULES_H
#define HOLDFAST_COMPILER_INLINERULES_H

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Whether code of 'Callee' may run as a part of 'Caller': the processors that
/// they are compiled for agree, and their sanitizers, floating-point modes,
/// garbage collectors and personalities; and nothing in it needs a frame of its
/// own.
bool mayInlineInto(llvm::Function &Caller, llvm::Function &Callee,
                   llvm::FunctionAnalysisManager &FAM);

/// Whether the source asks that the function be called. Without optimisation
/// clang says so of every function, which counts for nothing.
bool isToBeCalled(const llvm::Function &F);

} // namespace holdfast

#endif
