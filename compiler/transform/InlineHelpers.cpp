// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/InlineHelpers.h"
#include "analysis/Calls.h"
#include "transform/InsertCalls.h"

#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace holdfast {

using Functions = SmallPtrSet<const Function *, 16>;

static void addCallees(const Function &F, Functions &To,
                       SmallVectorImpl<const Function *> &Left) {
  for (const Instruction &I : instructions(F))
    if (const auto *Call = dyn_cast<CallBase>(&I);
        Call && classifyCall(*Call).Kind == CallKind::Body)
      if (const Function *Callee = calledFunction(*Call);
          To.insert(Callee).second)
        Left.push_back(Callee);
}

/// Whether it calls itself, directly or by others.
static bool recurses(const Function &F) {
  Functions Reached;
  SmallVector<const Function *, 16> Left;
  addCallees(F, Reached, Left);
  while (!Left.empty())
    addCallees(*Left.pop_back_val(), Reached, Left);
  return Reached.contains(&F);
}

static void inlineInto(Function &F, const Functions &Framed) {
  SmallVector<CallBase *, 16> Left;
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallBase>(&I))
      Left.push_back(Call);
  while (!Left.empty()) {
    CallBase *Call = Left.pop_back_val();
    if (classifyCall(*Call).Kind != CallKind::Body)
      continue;
    if (Framed.contains(calledFunction(*Call))) {
      cast<CallInst>(Call)->setTailCallKind(CallInst::TCK_None);
      dropPromises(*Call);
      continue;
    }
    InlineFunctionInfo Info;
    InlineResult Done = InlineFunction(*Call, Info);
    if (!Done.isSuccess())
      report_fatal_error(Twine("holdfast: a section's helper cannot be put "
                               "into it: ") +
                         Done.getFailureReason());
    append_range(Left, Info.InlinedCallSites);
  }
}

void inlineHelpers(Sections &All) {
  Functions Framed;
  for (const auto &F : All.Functions)
    if (F->As == Role::Helper && recurses(*F->Instance)) {
      Framed.insert(F->Instance);
      dropPromises(*F->Instance); // it will write to its frame
    }
  auto IsPart = [&](const auto &F) {
    return F->As == Role::Helper && !Framed.contains(F->Instance);
  };
  for (const auto &F : All.Functions)
    if (!IsPart(F))
      inlineInto(*F->Instance, Framed);
  auto Helpers = make_filter_range(All.Functions, IsPart);
  for (const auto &F : Helpers)
    F->Instance->dropAllReferences(); // they may call each other
  for (const auto &F : Helpers)
    F->Instance->eraseFromParent();
  erase_if(All.Functions, IsPart);
}

void promoteLocals(Function &F, FunctionAnalysisManager &FAM) {
  auto Run = [&](auto Pass) { FAM.invalidate(F, Pass.run(F, FAM)); };
  Run(SROAPass(SROAOptions::ModifyCFG));
  Run(EarlyCSEPass());
  Run(ADCEPass());
  Run(SimplifyCFGPass());
}

} // namespace holdfast
