// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_INSERTCALLS_H
#define HOLDFAST_COMPILER_INSERTCALLS_H

#include "analysis/ClobberWrites.h"
#include "analysis/LogsAhead.h"

namespace holdfast {

/// Inserts the runtime's calls before the writes of 'F', and the entries made
/// ahead of them.
void insertCalls(llvm::Function &F, llvm::ArrayRef<LoggedWrite> Writes,
                 llvm::ArrayRef<LogAhead> Ahead, const EngineInfo &Engine);

/// Removes what a function or a call promises about memory.
void dropPromises(llvm::Function &F);
void dropPromises(llvm::CallBase &Call);

/// Removes what 'F' and its calls promised about memory and no longer hold to.
void dropMemoryPromises(llvm::Function &F);

} // namespace holdfast

#endif
