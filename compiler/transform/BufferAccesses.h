// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_BUFFERACCESSES_H
#define HOLDFAST_COMPILER_BUFFERACCESSES_H

#include "analysis/BufferedAccesses.h"

namespace holdfast {

/// Rewrites the accesses of 'F', an instance, that 'Found' says: they go through
/// the section's write buffer. Stores to fresh memory are noted.
void bufferAccesses(llvm::Function &F, const BufferedAccesses &Found,
                    const EngineInfo &Engine);

} // namespace holdfast

#endif
