// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_HIDEBODIES_H
#define HOLDFAST_COMPILER_HIDEBODIES_H

#include "llvm/IR/Module.h"

namespace holdfast {

/// Puts the body of a txfunc out of its callers' sight; returns false, and does
/// nothing, to one that will be refused.
bool hideBody(llvm::Function &Txfunc);

/// Gives every txfunc of the module its body back.
void revealBodies(llvm::Module &M);

} // namespace holdfast

#endif
