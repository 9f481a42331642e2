// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_INSERTCALLS_H
#define HOLDFAST_COMPILER_INSERTCALLS_H

#include "analysis/ClobberWrites.h"

namespace holdfast {

/// Inserts the runtime's calls before the writes of 'F'.
void insertCalls(llvm::Function &F, llvm::ArrayRef<LoggedWrite> Writes,
                 EngineKind Engine);

/// Removes what 'F' and its calls promised about memory and no longer hold to.
void dropMemoryPromises(llvm::Function &F);

} // namespace holdfast

#endif
