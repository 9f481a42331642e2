// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps of a section that resumes: what it does to persistent memory, each
// with the place behind it, where it goes on after a crash.
#ifndef HOLDFAST_COMPILER_CUTSTEPS_H
#define HOLDFAST_COMPILER_CUTSTEPS_H

#include "analysis/Sections.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace holdfast {

struct Step {
  enum Kind {
    Begin,   ///< the section begins here
    Point,   ///< nothing is done
    Store,   ///< At: of one, two, four or eight bytes, of one line
    Copy,    ///< At: within the pool
    Fill,    ///< At
    Alloc,   ///< At: its result goes to its slot
    Free,    ///< At
    Lock,    ///< At
    TryLock, ///< At: Before ends with a branch, to Behind if the lock is held
    Unlock,  ///< At
    Call,    ///< of a function with a frame, at the begin of Behind
    End      ///< the section ends here
  };
  Kind What;
  llvm::Instruction *At;    ///< what is done; null: nothing of the function's
  llvm::BasicBlock *Before; ///< ends with At, if anything, and goes on ...
  llvm::BasicBlock *Behind; ///< ... here, at the block's begin
};

struct Steps {
  std::vector<Step> All;
  /// Writes to the pool between steps, which the next one makes durable.
  llvm::SmallVector<llvm::Instruction *, 16> Noted;

  /// Whether control passes from 'From' to 'To' without a step.
  bool isFree(const llvm::BasicBlock *To) const { return !Behind.contains(To); }
  llvm::SmallPtrSet<const llvm::BasicBlock *, 32> Behind;
};

/// Cuts the section's function 'F', its blocks included, or a function that
/// sections call. 'Report' receives what is wrong with it. No steps: it changes nothing.
Steps cutSteps(
    llvm::Function &F, Role As, const SectionOptions &Options,
    llvm::TargetLibraryInfo &Library,
    llvm::function_ref<void(const llvm::Twine &, const llvm::DebugLoc &)>
        Report);

/// The address that a store, copy, fill or call with a result in memory writes to,
/// and how many bytes; null for other instructions.
llvm::Value *writtenAddress(llvm::Instruction &I);
llvm::Value *writtenBytes(llvm::Instruction &I);

} // namespace holdfast

#endif
