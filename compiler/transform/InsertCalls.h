// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_INSERTCALLS_H
#define HOLDFAST_COMPILER_INSERTCALLS_H

#include "analysis/ClobberWrites.h"
#include "analysis/LogsAhead.h"

#include "llvm/IR/IRBuilder.h"

namespace holdfast {

/// Inserts the runtime's calls before the writes of 'F', and the entries made
/// ahead of them.
void insertCalls(llvm::Function &F, llvm::ArrayRef<LoggedWrite> Writes,
                 llvm::ArrayRef<LogAhead> Ahead, const EngineInfo &Engine);

/// ThreadSanitizer sees what the machine accesses here, not what the runtime does
/// for the program. It learns of the bytes that the program accesses ("read",
/// "write"), in functions that it looks at.
void announceAccess(llvm::IRBuilderBase &Builder, llvm::StringRef Access,
                    llvm::Value *Address, llvm::Value *Bytes);

/// Removes what a function or a call promises about memory.
void dropPromises(llvm::Function &F);
void dropPromises(llvm::CallBase &Call);

/// Removes what 'F' and its calls promised about memory and no longer hold to.
void dropMemoryPromises(llvm::Function &F);

} // namespace holdfast

#endif
