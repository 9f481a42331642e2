// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section must find in its frame to go on behind each of its steps.
#ifndef HOLDFAST_COMPILER_RESUMEPOINTS_H
#define HOLDFAST_COMPILER_RESUMEPOINTS_H

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Function.h"

namespace holdfast {

/// A place behind which the function may go on in another process.
struct ResumePoint {
  llvm::BasicBlock *Before; ///< ends there
  llvm::BasicBlock *Behind; ///< begins there; entered from nowhere else
  bool Ends;                ///< nothing is left to do behind it
  llvm::Value *Result;      ///< of what is done there, if that goes to a slot
};

struct ResumeNeeds {
  /// Registers whose bytes the function needs behind the point.
  llvm::SmallVector<llvm::Value *, 8> Saved;
  /// Those of Saved that must be written before the point.
  llvm::SmallVector<llvm::Value *, 8> Written;
  /// Registers that are read behind the point: those of Saved, those computed
  /// again from them, and those that only a result needs which nobody reads.
  llvm::SmallVector<llvm::Value *, 8> Live;
};

struct ResumePlan {
  std::vector<ResumeNeeds> At; ///< each point's
  /// Every register that is saved somewhere; whether it may be set again while its
  /// former value may still be needed.
  llvm::MapVector<llvm::Value *, bool> Doubled;
};

/// 'Returns': to a function that is resumed as well, and wants the result.
ResumePlan planResumption(llvm::Function &F, llvm::ArrayRef<ResumePoint> Points,
                          bool Returns);

/// Whether the register is computed again, of constants, locals' addresses and
/// one other register, rather than saved.
bool isComputedAgain(const llvm::Value *V);

} // namespace holdfast

#endif
