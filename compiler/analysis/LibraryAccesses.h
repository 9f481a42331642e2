// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What functions of the C library do to memory they are given, for trace mode.
// (Which of them a section may call is in Calls.cpp.)
#ifndef HOLDFAST_COMPILER_LIBRARYACCESSES_H
#define HOLDFAST_COMPILER_LIBRARYACCESSES_H

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/InstrTypes.h"

namespace holdfast {

/// Arguments by number, -1 for none.
struct LibraryCall {
  llvm::LibFunc Function;
  int Reads[2];
  int Writes;
  int Length;        ///< in bytes; none: what is written is a string
  bool ReadsStrings; ///< which end with their terminating zero, or at Length
};

/// Null when 'Call' calls another function, or one with a visible body.
const LibraryCall *findLibraryCall(const llvm::CallBase &Call,
                                   const llvm::TargetLibraryInfo &Library);

} // namespace holdfast

#endif
