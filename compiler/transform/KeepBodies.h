// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bodies that link-time optimisation of kind 'thin' shows a module for a while.
#ifndef HOLDFAST_COMPILER_KEEPBODIES_H
#define HOLDFAST_COMPILER_KEEPBODIES_H

#include "llvm/IR/PassManager.h"

namespace holdfast {

struct KeepBodiesPass : llvm::PassInfoMixin<KeepBodiesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace holdfast

#endif
