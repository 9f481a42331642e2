// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_RELOCATEACCESSES_H
#define HOLDFAST_COMPILER_RELOCATEACCESSES_H

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Marks the module as relocatable, and lets copies of structs that hold
/// pointers move them as pointers, while it is known which bytes they are.
struct SplitCopiesPass : llvm::PassInfoMixin<SplitCopiesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

/// Translates pointers between relocated pools and everything else. Runs after
/// the sections are instrumented: it translates what their own code moves.
struct RelocateAccessesPass : llvm::PassInfoMixin<RelocateAccessesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M,
                              llvm::ModuleAnalysisManager &MAM);
  static bool isRequired() { return true; }
};

/// Whether SplitCopiesPass has marked the module.
bool isRelocatable(const llvm::Module &M);

/// Copies a 'T', the pointers in it as pointers.
void copyByType(llvm::IRBuilderBase &Builder, llvm::Value *To,
                llvm::Align ToAlign, llvm::Value *From, llvm::Align FromAlign,
                llvm::Type *T, const llvm::DataLayout &Layout);

} // namespace holdfast

#endif
