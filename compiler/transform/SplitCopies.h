// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of structs in relocatable code (docs/internals/relocation.md). A copy of a
// struct whose type metadata names pointers becomes loads and stores of these, and
// copies of the bytes between. The pass runs on clang's own output: later the
// optimiser would make integers of the pointers.
#ifndef HOLDFAST_COMPILER_SPLITCOPIES_H
#define HOLDFAST_COMPILER_SPLITCOPIES_H

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Marks the module as relocatable, and lets copies of structs that hold
/// pointers move them as pointers, while it is known which bytes they are.
struct SplitCopiesPass : llvm::PassInfoMixin<SplitCopiesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

/// Lets copies of structs that are a pointer and nothing else move it as one, for
/// sections that keep addresses of constants in frames (ConstantAddresses.h).
struct SplitWordCopiesPass : llvm::PassInfoMixin<SplitWordCopiesPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

/// Whether SplitCopiesPass has marked the module.
bool isRelocatable(const llvm::Module &M);

/// Whether an access tag of type-based alias analysis says "pointer".
bool isPointerTag(const llvm::MDNode *Tag);

/// Lets calls in 'Instances' return structs by way of a local variable, from where
/// the instance copies them by their type; not calls of other instances.
void returnByWayOfLocals(llvm::ArrayRef<llvm::Function *> Instances);

/// Copies a 'T', the pointers in it as pointers.
void copyByType(llvm::IRBuilderBase &Builder, llvm::Value *To,
                llvm::Align ToAlign, llvm::Value *From, llvm::Align FromAlign,
                llvm::Type *T, const llvm::DataLayout &Layout);

} // namespace holdfast

#endif
