// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_TRACEACCESSES_H
#define HOLDFAST_COMPILER_TRACEACCESSES_H

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Reports every access that may touch PM to the crash checker. Runs after
/// everything else, so that it reports what the machine will execute, and what
/// the engine's calls are given.
struct TraceAccessesPass : llvm::PassInfoMixin<TraceAccessesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
  /// A store that 'optnone' hides is one the checker takes for lost.
  static bool isRequired() { return true; }
};

/// Keeps functions that are not to be traced from being inlined into others,
/// where they would be. Runs first.
struct KeepUntracedApartPass : llvm::PassInfoMixin<KeepUntracedApartPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace holdfast

#endif
