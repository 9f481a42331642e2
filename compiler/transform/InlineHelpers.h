// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_INLINEHELPERS_H
#define HOLDFAST_COMPILER_INLINEHELPERS_H

#include "analysis/Sections.h"

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Inlines the helpers that a section's own function calls, deletes their
/// instances and removes them from 'All'. Helpers that recurse, are too large or
/// may not be inlined stay, and have frames of their own.
/// Returns false when it has reported an error.
///
/// Requires: findUnresumable (ResumeRules.h) has reported nothing.
bool inlineHelpers(Sections &All, llvm::FunctionAnalysisManager &FAM);

/// Brings the locals of 'F' into registers as far as they go, at every
/// optimisation level: each one that stays in memory is part of the frame.
void promoteLocals(llvm::Function &F, llvm::FunctionAnalysisManager &FAM);

} // namespace holdfast

#endif
