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

struct LoggedWrite {
  Write Site;
  bool Log; ///< else the store is only noted
};

/// What the function is for decides what was read before it began.
enum class Role {
  Entry, ///< the section's own function: nothing
  Helper ///< called somewhere in a section: everything
};

llvm::SmallVector<LoggedWrite, 16>
decideWrites(llvm::Function &F, Role As, const SectionOptions &Options,
             const FreshFunctions &Fresh, llvm::TargetLibraryInfo &Library);

} // namespace holdfast

#endif
