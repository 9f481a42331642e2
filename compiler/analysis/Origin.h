// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a pointer in a section comes from, as far as that is provable.
#ifndef HOLDFAST_COMPILER_ORIGIN_H
#define HOLDFAST_COMPILER_ORIGIN_H

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
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

/// The origin of the object that 'Pointer' is computed from; Unknown unless
/// every possibility agrees (a mix of Fresh and Local counts as Fresh).
///
/// A language's pointer stays in its object; a self-relative one (offset_ptr)
/// is the address of a local or a fresh block plus whatever was stored there.
/// Ask mayStray, too, before what the object is says anything about an access.
Origin originOf(const llvm::Value *Pointer, const FreshFunctions &Fresh,
                const llvm::LoopInfo *Loops);

/// Where an access is made, as far as that is known: captures that cannot come
/// before it do not count.
struct Place {
  const llvm::Instruction *At = nullptr;
  const llvm::DominatorTree *Tree = nullptr;
  const llvm::LoopInfo *Loops = nullptr;
};

/// Whether an access of 'Bytes' bytes at 'Address' may lie outside the local or
/// fresh block that the address is computed from. It does not where the offset
/// is shown to be inside, nor while nobody can have made an offset to something
/// else: that takes the block's own address as a number.
bool mayStray(const llvm::Value *Address, uint64_t Bytes,
              const Place &Where = {});

/// Whether what somebody computes from the address, at whatever distance, may
/// lie outside of that object.
bool mayLeadElsewhere(const llvm::Value *Address, const Place &Where);

/// Whether null is among the objects that the address is computed from. Of such
/// an address originOf says what the others are: ask mayStray, too.
bool mayBeNull(const llvm::Value *Address);

/// Whether the address may be a number that somebody has added to null, not
/// counting an index within an object, which the language does not allow there.
bool mayBeNumber(const llvm::Value *Address);

/// False when the memory is part of no file mapping: locals, globals,
/// thread-local variables. Of a vector of addresses: of any.
bool mayBePM(const llvm::Value *Address);

/// Whether the global holds the same bytes in every process that runs this
/// version of a section: constant, with an initialiser that is seen here and
/// cannot be replaced. What is declared here and defined elsewhere may be
/// initialised when the program starts, or differ in the next build.
bool neverChanges(const llvm::GlobalVariable &Global);

/// Returns the global variable that 'Of' names or leads to: directly, by an
/// alias, or through the pointers in constants. Constants and variables of tools
/// do not count. Null without one.
const llvm::GlobalValue *findMutableGlobal(const llvm::Constant &Of);

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
