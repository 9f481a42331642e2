// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a pointer in a section comes from, as far as that is provable.
#ifndef HOLDFAST_COMPILER_ORIGIN_H
#define HOLDFAST_COMPILER_ORIGIN_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Function.h"

namespace holdfast {

enum class Origin {
  Local,     ///< this activation's own stack: made again by re-execution
  Preserved, ///< bytes that hf_vlog_preserve recorded
  Constant,  ///< a global that never changes
  Fresh,     ///< allocated in this section: no input lives there
  Unknown,   ///< may be PM with inputs in it
};

/// Functions that return null or memory allocated during the call.
using FreshFunctions = llvm::SmallPtrSet<const llvm::Function *, 8>;

/// The origin of the memory 'Pointer' points to; Unknown unless every
/// possibility agrees (a mix of Fresh and Local counts as Fresh).
Origin originOf(const llvm::Value *Pointer, const FreshFunctions &Fresh,
                const llvm::LoopInfo *Loops);

/// False when the memory is part of no file mapping: locals, globals,
/// thread-local variables. Of a vector of addresses: of any.
bool mayBePM(const llvm::Value *Address);

/// Adds to 'Fresh' those of 'Functions' that return fresh memory on every path.
///
/// The attribute 'noalias' on a result is not enough: a free list inside the
/// application hands out blocks whose old bytes are inputs.
void findFreshFunctions(llvm::ArrayRef<llvm::Function *> Functions,
                        FreshFunctions &Fresh);

/// Counters and tables that instrumentation for coverage or sanitizers keeps in
/// globals. They are no input of the program.
bool isToolGlobal(const llvm::GlobalVariable &Global);

} // namespace holdfast

#endif
