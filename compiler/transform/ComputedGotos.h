// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_COMPUTEDGOTOS_H
#define HOLDFAST_COMPILER_COMPUTEDGOTOS_H

#include "llvm/IR/Function.h"

namespace holdfast {

/// Makes a switch of each computed goto, and numbers of the addresses of labels.
void expandComputedGotos(llvm::Function &F);

} // namespace holdfast

#endif
