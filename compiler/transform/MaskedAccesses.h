// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns accesses of vectors by masks and by indices into plain ones. A log of the
// whole vector would also restore bytes that the section has not stored, and an
// index may lead anywhere, whatever the base is.
#ifndef HOLDFAST_COMPILER_MASKEDACCESSES_H
#define HOLDFAST_COMPILER_MASKEDACCESSES_H

#include "llvm/IR/Function.h"

namespace holdfast {

/// Replaces masked and scattered stores of 'F' by branches and plain stores,
/// and with 'Loads' masked and gathered loads by plain loads: LLVM's own, and
/// those of the processor's intrinsics whose meaning is known here. The others
/// stay: Calls.cpp refuses them, or says that they may read anything.
void expandMasked(llvm::Function &F, bool Loads);

/// Makes a number of each address that is computed from null: alias analysis
/// holds that nothing lies there.
void showAddressesFromNull(llvm::Function &F);

} // namespace holdfast

#endif
