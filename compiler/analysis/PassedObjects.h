// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objects that a section gets by value, where the processor's rules pass them by
// their address.
#ifndef HOLDFAST_COMPILER_PASSEDOBJECTS_H
#define HOLDFAST_COMPILER_PASSEDOBJECTS_H

#include "analysis/Arguments.h"

namespace holdfast {

/// Reports an object that the section's record lacks, since it is passed by its
/// address and its parameter has no mark. Returns whether the record has all.
bool checkPassedObjects(const llvm::Function &F, const ArgumentBlock &Block);

} // namespace holdfast

#endif
