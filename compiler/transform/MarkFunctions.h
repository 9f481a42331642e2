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

/// Returns the options that a function was marked with, wherever it is
/// instrumented. Reports an error, and returns none, when they are not options.
std::optional<SectionOptions> optionsOf(const llvm::Function &Txfunc);

} // namespace holdfast

#endif
