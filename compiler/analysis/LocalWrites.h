// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is written to a local variable that stays in memory, and which of it a
// later read may find.
#ifndef HOLDFAST_COMPILER_LOCALWRITES_H
#define HOLDFAST_COMPILER_LOCALWRITES_H

#include "analysis/ConstantTables.h"

#include "llvm/ADT/ArrayRef.h"

namespace holdfast {

/// A store, a copy or a fill, or a call that is given an address in the local.
struct LocalWrite {
  const llvm::Instruction *At;
  Extent Where;
  const llvm::Value *Stored = nullptr; ///< of a store
  const llvm::Value *Source = nullptr; ///< of a copy: from where
  int Argument = -1;                   ///< of a call

  bool isCall() const { return Argument >= 0; }
  bool mayMeet(const Extent &Read) const;
  /// Whether nothing of 'Other' that 'Read' may meet is left behind it. What
  /// a call leaves, nobody knows.
  bool covers(const LocalWrite &Other, const Extent &Read) const;
};

/// Collects them; false if the address is kept somewhere, so that there may be
/// others.
bool collectWrites(const llvm::AllocaInst &Local,
                   llvm::SmallVectorImpl<LocalWrite> &Found);

/// Whether 'Reader' may find what 'W', one of 'All', leaves of the bytes 'Read'.
bool isFound(const LocalWrite &W, const Extent &Read,
             const llvm::Instruction &Reader, llvm::ArrayRef<LocalWrite> All);

/// Returns where the bytes that 'Read' meets were before they were copied to
/// 'Written', relative to the copy's source.
Extent partRead(const Extent &Written, const Extent &Read);

/// Calls 'Visit' with each word of 'At': different writes may have stored them.
void forEachWord(const Extent &At,
                 llvm::function_ref<void(const Extent &)> Visit);

} // namespace holdfast

#endif
