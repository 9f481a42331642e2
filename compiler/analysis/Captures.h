// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the closure of an hf::tx may hold, as far as its callers show it.
#ifndef HOLDFAST_COMPILER_CAPTURES_H
#define HOLDFAST_COMPILER_CAPTURES_H

#include "analysis/Arguments.h"

namespace holdfast {

/// Reports every call of the section 'Txfunc' that gives it a closure with the
/// address of a variable which the section follows: a re-execution would find
/// something else there. Returns whether there was none.
///
/// 'Block' is the layout of the section's arguments. Sections that are not
/// closures pass: there the runtime looks at each pointer.
bool checkCaptures(const llvm::Function &Txfunc, const llvm::Function &Body,
                   const ArgumentBlock &Block);

} // namespace holdfast

#endif
