// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions that make up the failure-atomic sections of a module.
#ifndef HOLDFAST_COMPILER_SECTIONS_H
#define HOLDFAST_COMPILER_SECTIONS_H

#include "analysis/ClobberWrites.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DebugLoc.h"

namespace holdfast {

/// One instance of a function made for use in sections.
struct SectionFunction {
  llvm::Function *Original; ///< what the user wrote, and what messages name
  llvm::Function *Instance; ///< our internal copy
  Role As;
  llvm::Function *ReachedFrom; ///< the txfunc that first led here
  /// The call that first led to a helper, and the function it is in; null of a
  /// section's own body.
  const SectionFunction *CalledIn = nullptr;
  llvm::DebugLoc CalledAt = {};
  /// Whether only indirect calls lead here: what is wrong with it is no error
  /// unless one does, and then 'Unfit' says it.
  bool Possible = false;
  std::string Unfit = {};
};

/// A function whose address is taken, which an indirect call may reach.
struct Callee {
  llvm::Function *Original;
  llvm::Function *Instance; ///< null: unfit for sections
  std::string Why;          ///< it is unfit
};

/// A call under an exception handler that does more than clean up or terminate.
struct HandledCall {
  SectionFunction *In;
  llvm::Function *Callee; ///< instance called; null when the call itself throws
  llvm::DebugLoc Where;
};

/// All instances for one set of options, in the order in which they were found.
struct Sections {
  SectionOptions Options;
  std::vector<std::unique_ptr<SectionFunction>> Functions;
  std::vector<Callee> Callees;
  llvm::SmallVector<HandledCall, 4> Handled;
  /// Instances that called std::__throw_*.
  llvm::SmallPtrSet<const llvm::Function *, 4> Throwers;
};

/// Receives what is wrong in a section's function, and where.
using SectionReport = llvm::function_ref<void(
    SectionFunction &, const llvm::Twine &, const llvm::DebugLoc &)>;

/// Returns the function's name as the source spells it.
std::string prettyName(const llvm::Function &F);

} // namespace holdfast

#endif
