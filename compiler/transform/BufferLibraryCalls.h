// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_BUFFERLIBRARYCALLS_H
#define HOLDFAST_COMPILER_BUFFERLIBRARYCALLS_H

#include "analysis/BufferedAccesses.h"

#include "llvm/IR/Instructions.h"

namespace holdfast {

/// Rewrites a call of a library function that reads or writes what goes through
/// the buffer. Leaves every other call as it is.
void bufferLibraryCall(llvm::CallInst &Call, const BufferedAccesses &Found,
                       const EngineInfo &Engine);

} // namespace holdfast

#endif
