// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Engine justdo: a section that goes on behind its last step.
#ifndef HOLDFAST_COMPILER_MAKERESUMABLE_H
#define HOLDFAST_COMPILER_MAKERESUMABLE_H

#include "analysis/Arguments.h"
#include "analysis/Sections.h"

#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Gives each function of 'All', into which its helpers have been put, its
/// steps, its frame and its entry, and makes a section's own function the body of its
/// txfunc. 'Blocks': their arguments, those of the sections first. Appends their descriptors.
void makeResumable(const Sections &All, llvm::ArrayRef<ArgumentBlock> Blocks,
                   llvm::FunctionAnalysisManager &FAM,
                   llvm::SmallVectorImpl<llvm::GlobalVariable *> &Descriptors);

} // namespace holdfast

#endif
