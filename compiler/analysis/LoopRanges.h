// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that overwrite a range of bytes, of which one entry of the log has all.
#ifndef HOLDFAST_COMPILER_LOOPRANGES_H
#define HOLDFAST_COMPILER_LOOPRANGES_H

#include "analysis/LogsAhead.h"

namespace holdfast {

/// Adds an entry before each loop of 'F' for the range that its writes together
/// store to, where that is known to the byte; those writes are noted. The
/// arithmetic that computes the range is inserted, and a block before the loop
/// where there is none.
void planLoopRanges(llvm::Function &F,
                    llvm::MutableArrayRef<LoggedWrite> Writes,
                    llvm::TargetLibraryInfo &Library,
                    llvm::SmallVectorImpl<LogAhead> &Result);

} // namespace holdfast

#endif
