// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_FRAMELOCALS_H
#define HOLDFAST_COMPILER_FRAMELOCALS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Function.h"

namespace holdfast {

/// Copies what a section finds in its caller's memory to locals, which the frame
/// has room for: aggregates passed by value, preserved bytes. A result that is
/// returned in memory is made in a local, and copied when the function returns.
/// Writes by the library become the intrinsics that they are.
/// Each preservation leaves a call of PreserveMark behind, for cutSteps.
/// 'Report' receives preservations of a number of bytes that is not constant.
void makeFrameLocals(
    llvm::Function &F,
    llvm::function_ref<void(const llvm::Twine &, const llvm::DebugLoc &)>
        Report);

/// Nobody defines it.
inline constexpr llvm::StringLiteral PreserveMark = "holdfast.preserved";

/// Whether the address is in the memory that the caller has given for the
/// result: nobody wants that of a section that is resumed.
bool isOfResult(const llvm::Value *Address);

} // namespace holdfast

#endif
