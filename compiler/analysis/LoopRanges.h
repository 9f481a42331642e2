// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops that overwrite a range of bytes, which one entry of the log can hold.
#ifndef HOLDFAST_COMPILER_LOOPRANGES_H
#define HOLDFAST_COMPILER_LOOPRANGES_H

#include "analysis/LogsAhead.h"

namespace holdfast {

/// Adds an entry before each loop of 'F' for the range that its writes together
/// store to, where that range is known to the byte. Those writes are noted only.
/// Inserts the arithmetic that computes the range, and a block before the loop if
/// it lacks one.
void planLoopRanges(llvm::Function &F,
                    llvm::MutableArrayRef<LoggedWrite> Writes,
                    llvm::TargetLibraryInfo &Library,
                    llvm::SmallVectorImpl<LogAhead> &Result);

} // namespace holdfast

#endif
