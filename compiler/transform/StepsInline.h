// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_STEPSINLINE_H
#define HOLDFAST_COMPILER_STEPSINLINE_H

#include "analysis/Engines.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

namespace holdfast {

/// A call of the runtime that makes a step, and those before it that note what it saves.
struct StepCall {
  llvm::CallInst *Step;
  llvm::SmallVector<llvm::CallInst *, 2> Saved;
};

/// Makes steps that store a word, or nothing, without a call where the medium keeps order.
void putStepInLine(const StepCall &Call, const EngineInfo &Engine);
/// The same of a note, which says there no more than that the bytes lie in the pool.
void putNoteInLine(llvm::CallInst &Note);

} // namespace holdfast

#endif
