// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_INSTRUMENT_H
#define HOLDFAST_COMPILER_INSTRUMENT_H

#include "analysis/Names.h"

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Makes the marked functions of a module failure-atomic. Runs last, so that it
/// sees what the machine will execute.
struct InstrumentPass : llvm::PassInfoMixin<InstrumentPass> {
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
  /// A persistence pass that 'optnone' skips loses data.
  static bool isRequired() { return true; }
};

/// Runs in the compile step of link-time optimisation, where bodies of other
/// files are not visible yet: leaves the work to the link, and a guard against
/// a link without the plugin.
struct DeferToLinkPass : llvm::PassInfoMixin<DeferToLinkPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace holdfast

#endif
