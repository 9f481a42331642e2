// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides, for engines that buffer what a section writes, which accesses of its
// functions go through the buffer.
#ifndef HOLDFAST_COMPILER_BUFFEREDACCESSES_H
#define HOLDFAST_COMPILER_BUFFEREDACCESSES_H

#include "analysis/Sections.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace holdfast {

/// The operands by which instructions read or write. They stay what they are when
/// the address itself is computed by another instruction from now on.
using AddressUses = llvm::DenseSet<const llvm::Use *>;

struct BufferedAccesses {
  AddressUses Reads;  ///< may read what a store has buffered
  AddressUses Writes; ///< may write PM that is not fresh
  /// Stores to fresh memory, which stay where they are and are only noted.
  llvm::SmallVector<LoggedWrite, 16> Notes;
};

/// Finds those of every instance, in the order of 'All.Functions'.
std::vector<BufferedAccesses> findBufferedAccesses(const Sections &All,
                                                   const FreshFunctions &Fresh);

/// Calls 'Report' with every access that would have to go through the buffer
/// and cannot, because nobody knows how far it goes.
void findUnbufferable(const Sections &All, const FreshFunctions &Fresh,
                      SectionReport Report);

} // namespace holdfast

#endif
