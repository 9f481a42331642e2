// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_MARKFUNCTIONS_H
#define HOLDFAST_COMPILER_MARKFUNCTIONS_H

#include "analysis/Names.h"

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Turns annotations into function attributes that survive optimisation. Runs
/// first.
struct MarkFunctionsPass : llvm::PassInfoMixin<MarkFunctionsPass> {
  SectionOptions Options;
  explicit MarkFunctionsPass(SectionOptions Options) : Options(Options) {}

  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

/// The options of a marked function: those it was marked with, wherever it is
/// instrumented.
SectionOptions optionsOf(const llvm::Function &Txfunc);

} // namespace holdfast

#endif
