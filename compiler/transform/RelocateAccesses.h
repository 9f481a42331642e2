// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_RELOCATEACCESSES_H
#define HOLDFAST_COMPILER_RELOCATEACCESSES_H

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Translates pointers between relocated pools and everything else. Runs after
/// the sections are instrumented: it translates what their own code moves.
struct RelocateAccessesPass : llvm::PassInfoMixin<RelocateAccessesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }
};

} // namespace holdfast

#endif
