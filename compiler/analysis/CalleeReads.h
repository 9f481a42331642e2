// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a called function reads, as far as it promises.
#ifndef HOLDFAST_COMPILER_CALLEEREADS_H
#define HOLDFAST_COMPILER_CALLEEREADS_H

#include "analysis/Accesses.h"

namespace holdfast {

/// Puts, in place of each read of anything that stands for a call of a visible
/// function, what that function may read.
void narrowCalleeReads(llvm::SmallVectorImpl<Read> &Reads,
                       const FreshFunctions &Fresh,
                       const llvm::DominatorTree &Tree,
                       const llvm::LoopInfo &Loops);

} // namespace holdfast

#endif
