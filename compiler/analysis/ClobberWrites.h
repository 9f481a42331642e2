// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides, for each write of a section's function that may reach PM, whether
// its old bytes must be logged first.
#ifndef HOLDFAST_COMPILER_CLOBBERWRITES_H
#define HOLDFAST_COMPILER_CLOBBERWRITES_H

#include "analysis/Accesses.h"
#include "analysis/Names.h"

#include "llvm/Analysis/TargetLibraryInfo.h"

namespace holdfast {

/// What was found about a write.
enum class Verdict {
  Fresh,   ///< needs no log: to memory that the section has allocated
  Covered, ///< an earlier write of the section covers it
  NoInput, ///< what it overwrites was never an input
  Logged,
};

struct LoggedWrite {
  Write Site;
  bool Log; ///< else the store is only noted
  Verdict Why = Verdict::Logged;
};

/// A function's role decides what was read before it began.
enum class Role {
  Entry, ///< the section's own function: nothing
  Helper ///< called somewhere in a section: everything
};

llvm::SmallVector<LoggedWrite, 16>
decideWrites(llvm::Function &F, Role As, const SectionOptions &Options,
             const FreshFunctions &Fresh, llvm::TargetLibraryInfo &Library);

} // namespace holdfast

#endif
