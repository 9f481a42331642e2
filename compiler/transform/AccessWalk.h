// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the passes have in common that rewrite accesses of memory: the walk over
// a function's accesses, and the two steps of a rewrite. Every decision falls
// before the first insertion, so that it is about the code as it was.
#ifndef HOLDFAST_COMPILER_ACCESSWALK_H
#define HOLDFAST_COMPILER_ACCESSWALK_H

#include "analysis/LLVMVersions.h"
#include "transform/InsertCalls.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

namespace holdfast {

/// One access of memory. An instruction makes several when it reads two places,
/// or passes aggregates.
struct MemoryAccess {
  enum Kind {
    Single,  ///< a load, store or exchange of an 'Of'
    Lanes,   ///< of the vector 'Of', those lanes that 'Mask' chooses
    Packed,  ///< the same, but the chosen lanes lie one behind the other
    Passed,  ///< an aggregate that a call copies for its callee
    Bytes,   ///< by a memory intrinsic or a function of the C library
    Strings, ///< by one that stops behind a terminating zero
  };
  llvm::Instruction *At;
  Kind What;
  llvm::Value *From; ///< the address that is read; null: nothing is
  llvm::Value *To;   ///< the address that is written; null: nothing is.
                     ///< Exchanges and copies have both
  /// In bytes: at most, if packed; of each of the Lanes. Null: as far as the
  /// string goes.
  llvm::Value *Length;
  llvm::Type *Of = nullptr; ///< none of Bytes and Strings
  llvm::Value *Mask = nullptr;

  bool isAtomic() const { return At->isAtomic(); }
  bool isVolatile() const { return At->isVolatile(); }
  /// Whether each lane has an address of its own: From, or To, is a vector of
  /// them.
  bool isScattered() const {
    return (From ? From : To)->getType()->isVectorTy();
  }
};

/// Calls 'Visit' with every access of 'I'. Inline assembly, and intrinsics of
/// the processor, are left to the caller.
void forEachAccess(llvm::Instruction &I, const llvm::TargetLibraryInfo &Library,
                   llvm::function_ref<void(const MemoryAccess &)> Visit);

/// Inserts code that belongs to 'Access' and has its debug location.
class AccessBuilder : public llvm::InstrumentationIRBuilder {
public:
  AccessBuilder(llvm::Instruction &Point, const llvm::Instruction &Access);

  /// Splits the block at 'Point' and goes on in a block that is run when
  /// 'Condition' holds, which is next to never. Returns that block's end.
  llvm::Instruction *enterIf(llvm::Value *Condition, llvm::Instruction &Point);
};

/// Whether the module keeps the body of 'F', and calls can be inserted there.
bool isRewritable(const llvm::Function &F);

/// Makes the entry block of 'F' end behind its allocas, so that splitting a
/// block leaves none outside of it.
void keepAllocasInEntry(llvm::Function &F);

/// Runs 'Collect' on each of the functions, then 'Insert' on what it returned for
/// each of them, unless that is nothing. A function that calls the runtime now
/// drops what it promised about memory. False: nothing was found.
template <class Found>
bool rewriteAccesses(llvm::ArrayRef<llvm::Function *> Functions,
                     llvm::FunctionAnalysisManager &FAM,
                     llvm::function_ref<llvm::SmallVector<Found, 32>(
                         llvm::Function &, const llvm::TargetLibraryInfo &)>
                         Collect,
                     llvm::function_ref<void(llvm::ArrayRef<Found>)> Insert) {
  llvm::SmallVector<std::pair<llvm::Function *, llvm::SmallVector<Found, 32>>,
                    32>
      All;
  for (llvm::Function *F : Functions) {
    auto InF = Collect(*F, FAM.getResult<llvm::TargetLibraryAnalysis>(*F));
    if (!InF.empty())
      All.emplace_back(F, std::move(InF));
  }
  for (auto &[F, InF] : All) {
    keepAllocasInEntry(*F);
    Insert(InF);
    dropMemoryPromises(*F);
  }
  return !All.empty();
}

/// The same with every function of the module.
template <class Found>
llvm::PreservedAnalyses
rewriteAccesses(llvm::Module &M, llvm::ModuleAnalysisManager &MAM,
                llvm::function_ref<llvm::SmallVector<Found, 32>(
                    llvm::Function &, const llvm::TargetLibraryInfo &)>
                    Collect,
                llvm::function_ref<void(llvm::ArrayRef<Found>)> Insert) {
  llvm::SmallVector<llvm::Function *, 32> Functions;
  for (llvm::Function &F : M)
    if (isRewritable(F))
      Functions.push_back(&F);
  auto &FAM =
      MAM.getResult<llvm::FunctionAnalysisManagerModuleProxy>(M).getManager();
  return rewriteAccesses<Found>(Functions, FAM, Collect, Insert)
             ? llvm::PreservedAnalyses::none()
             : llvm::PreservedAnalyses::all();
}

} // namespace holdfast

#endif
