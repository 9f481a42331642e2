// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// When several modules have an inline function, a thin link keeps one body. The
// other modules see their body, or one that they import, only until the optimiser
// has used it. Sections are made later, and would not find it.
//
// So a section's body calls copies of its own module, and these call such copies.
// One definition is as good as another. Only calls change: the function's address
// stays the same.
#include "transform/KeepBodies.h"
#include "analysis/Names.h"
#include "transform/ComputedGotos.h"
#include "transform/MarkFunctions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace holdfast {

namespace {

class Keeper {
public:
  /// Follows what 'F' calls.
  void reach(Function &F) {
    if (!F.isDeclaration() && Seen.insert(&F).second)
      Left.push_back(&F);
  }

  bool run() {
    while (!Left.empty())
      for (Instruction &I : instructions(*Left.pop_back_val()))
        if (auto *Call = dyn_cast<CallBase>(&I))
          follow(*Call);
    return !Copies.empty();
  }

private:
  SmallPtrSet<Function *, 16> Seen;
  SmallVector<Function *, 16> Left;
  DenseMap<Function *, Function *> Copies;

  void follow(CallBase &Call) {
    Function *Callee = Call.getCalledFunction();
    // A section's body is not in its txfunc (HideBodies.cpp).
    if (!Callee || Callee->isDeclaration() || isTxfunc(*Callee))
      return;
    // Its module has a version for sections, and sees all that this calls.
    if (Callee->hasAvailableExternallyLinkage() && isCalledElsewhere(*Callee) &&
        callsOthers(*Callee)) {
      Call.setIsNoInline();
      return;
    }
    if (Callee->hasAvailableExternallyLinkage())
      Call.setCalledFunction(Callee = copyOf(*Callee));
    reach(*Callee);
  }

  static bool isCalledElsewhere(const Function &F) {
    if (!F.hasFnAttribute(SectionAttr))
      return false;
    std::optional<SectionOptions> Options = optionsOf(F);
    return Options && Options->Engine && Options->Engine->callsElsewhere();
  }

  static bool callsOthers(const Function &F) {
    return any_of(instructions(F), [](const Instruction &I) {
      return isa<CallBase>(I) && !isa<IntrinsicInst>(I);
    });
  }

  Function *copyOf(Function &F) {
    Function *&Copy = Copies[&F];
    if (!Copy) {
      ValueToValueMapTy Map;
      expandComputedGotos(F);
      Copy = CloneFunction(&F, Map);
      Copy->setName(F.getName() + ".hf_kept");
      Copy->setLinkage(GlobalValue::InternalLinkage);
      Copy->setVisibility(GlobalValue::DefaultVisibility);
      Copy->setDLLStorageClass(GlobalValue::DefaultStorageClass);
    }
    return Copy;
  }
};

} // namespace

PreservedAnalyses KeepBodiesPass::run(Module &M, ModuleAnalysisManager &) {
  const Function *Guard = M.getFunction(SectionGuard);
  Keeper K;
  for (Function &F : M)
    if (F.hasFnAttribute(SectionAttr) && !F.hasAvailableExternallyLinkage())
      K.reach(F);
  if (!Guard)
    return K.run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
  for (const User *By : Guard->users())
    if (const auto *Call = dyn_cast<CallBase>(By))
      if (auto *Body =
              dyn_cast<Function>(Call->getArgOperand(Call->arg_size() - 1)))
        K.reach(*Body);
  // Functions that sections call by address get a version for sections.
  for (Function &F : M)
    if (!F.hasAvailableExternallyLinkage() && F.hasAddressTaken())
      K.reach(F);
  return K.run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace holdfast
