// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory accesses of a section's function, each as a range of bytes.
#ifndef HOLDFAST_COMPILER_ACCESSES_H
#define HOLDFAST_COMPILER_ACCESSES_H

#include "analysis/Origin.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/MemoryLocation.h"
#include "llvm/IR/Instruction.h"

namespace holdfast {

/// Bytes [Address + Offset, Address + Offset + length), Address being stripped
/// of constant offsets.
struct Range {
  llvm::Value *Base = nullptr;
  int64_t Offset = 0;
  uint64_t Bytes = 0;            ///< 0 when it is not a constant
  llvm::Value *Length = nullptr; ///< the length when it is not a constant, if
                                 ///< there is such a value

  /// Whether this range contains 'Other' whenever both use the same instance of
  /// their values.
  bool covers(const Range &Other) const;
};

struct Read {
  llvm::Instruction *At;
  llvm::Value *Address; ///< null: may read anything
  Range Where;
  llvm::MemoryLocation Location;
  bool Strays = false; ///< may lie elsewhere than its address says (mayStray)
};

struct Write {
  llvm::Instruction *At;
  llvm::Value *Address;
  Range Where;
  llvm::MemoryLocation Location;
  Origin From;
  bool Strays = false;         ///< as of a Read
  bool LengthIsString = false; ///< strlen(source) + 1 bytes
  int Source = -1;             ///< operand to take that length from
};

/// Where the program says that stores to these bytes need no log.
struct Selection {
  llvm::Instruction *At;
  Range Where;
};

struct Accesses {
  llvm::SmallVector<Read, 16> Reads;   ///< of memory that may hold inputs
  llvm::SmallVector<Write, 16> Writes; ///< of memory that may be PM
  llvm::SmallVector<Selection, 4> Selections;
};

/// Collects the accesses of 'F'. Stores to locals are not listed, nor are reads
/// of locals, constants, preserved bytes and fresh memory: no input lives
/// there. FreshReads: reads of fresh memory are listed.
Accesses collectAccesses(llvm::Function &F, const FreshFunctions &Fresh,
                         const llvm::DominatorTree &Tree,
                         const llvm::LoopInfo &Loops, bool FreshReads = false);

/// The origin of what an access of 'Bytes' bytes at 'Address' meets, and whether
/// that may lie outside of the object its address is computed from.
struct Met {
  Origin From;
  bool Strays;
};
Met originOfAccess(const llvm::Value *Address, uint64_t Bytes,
                   const Place &Where, const FreshFunctions &Fresh);

/// Whether an intrinsic that only reads may read anything: its indices, or a
/// vector of addresses, lead away from whatever its arguments point to.
bool readsAnywhere(const llvm::CallBase &Call);

/// Whether the two accesses cannot meet, by alias analysis without types. What
/// it says of objects apart does not hold for addresses that stray.
llvm::AliasResult aliasOf(llvm::BatchAAResults &Queries, const Read &R,
                          const Write &W);

} // namespace holdfast

#endif
