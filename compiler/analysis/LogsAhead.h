// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which entries of a section's log are made before the writes that need them, so
// that several share one ordering point.
#ifndef HOLDFAST_COMPILER_LOGSAHEAD_H
#define HOLDFAST_COMPILER_LOGSAHEAD_H

#include "analysis/ClobberWrites.h"

namespace holdfast {

/// How a value is computed ahead of the instruction that computes it.
struct Recipe {
  llvm::Value *Result = nullptr;
  /// To be repeated, operands before their users.
  llvm::SmallVector<llvm::Instruction *, 4> Steps;
};

/// An entry for the bytes from Base + Offset on.
struct LogAhead {
  llvm::Instruction *Before = nullptr;
  Recipe Base;
  int64_t Offset = 0;
  uint64_t Bytes = 0;
  llvm::Value *Length = nullptr; ///< of the bytes, where it is no constant
};

/// Whether an entry for the write may be made ahead: not where it may lie in
/// memory that is not of the object its address is computed from, since one
/// entry is of fresh memory, or not, by where it begins.
bool mayBeAhead(const Write &W);

/// Whether no entry is made ahead over the instruction: it may call the runtime
/// for more than entries and notes, or not be left by the next one.
bool mayStop(const llvm::Instruction &I);

/// Plans the entries of 'F' that are made ahead. Of 'Writes', those whose bytes
/// such an entry certainly has need no entry of their own any more, and are
/// noted. Inserts at most arithmetic, and a block before a loop.
llvm::SmallVector<LogAhead, 8>
planLogsAhead(llvm::Function &F, llvm::MutableArrayRef<LoggedWrite> Writes,
              llvm::TargetLibraryInfo &Library);

} // namespace holdfast

#endif
