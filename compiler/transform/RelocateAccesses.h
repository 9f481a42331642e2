// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_RELOCATEACCESSES_H
#define HOLDFAST_COMPILER_RELOCATEACCESSES_H

#include "analysis/Engines.h"

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Translates pointers between relocated pools and everything else. Runs after
/// the sections are instrumented: it translates what their own code moves.
struct RelocateAccessesPass : llvm::PassInfoMixin<RelocateAccessesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }
};

/// Does the same to instances whose accesses are about to go through a section's
/// write buffer, of this engine: what waits there has its canonical form. The pass
/// leaves these functions alone.
void relocateBuffered(llvm::ArrayRef<llvm::Function *> Instances,
                      llvm::FunctionAnalysisManager &FAM,
                      const EngineInfo &Engine);

} // namespace holdfast

#endif
