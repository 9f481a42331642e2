// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts a section's function into idempotent regions as iDO logging would. For
// engine ido, which counts log entries and has no recovery.
#ifndef HOLDFAST_COMPILER_IDEMPOTENTREGIONS_H
#define HOLDFAST_COMPILER_IDEMPOTENTREGIONS_H

#include "analysis/Accesses.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"

namespace holdfast {

/// A region ends, and the next one begins, before an instruction.
struct RegionCut {
  llvm::Instruction *Before;
  uint64_t Bytes; ///< registers that the region set and later regions read
};

struct Regions {
  llvm::SmallVector<RegionCut, 16> Cuts;
  llvm::SmallVector<llvm::CallBase *, 1> Preserves; ///< hf_vlog_preserve
};

Regions cutIntoRegions(llvm::Function &F, const FreshFunctions &Fresh,
                       llvm::TargetLibraryInfo &Library);

} // namespace holdfast

#endif
