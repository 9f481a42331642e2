// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/InlineHelpers.h"
#include "analysis/Calls.h"

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

static void inlineInto(Function &F) {
  SmallVector<CallBase *, 16> Left;
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallBase>(&I))
      Left.push_back(Call);
  while (!Left.empty()) {
    CallBase *Call = Left.pop_back_val();
    if (classifyCall(*Call).Kind != CallKind::Body)
      continue;
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
  for (const auto &F : All.Functions)
    if (F->As == Role::Entry)
      inlineInto(*F->Instance);
  auto Helpers = make_filter_range(
      All.Functions, [](const auto &F) { return F->As == Role::Helper; });
  for (const auto &F : Helpers)
    F->Instance->dropAllReferences(); // they may call each other
  for (const auto &F : Helpers)
    F->Instance->eraseFromParent();
  erase_if(All.Functions, [](const auto &F) { return F->As == Role::Helper; });
}

void promoteLocals(Function &F, FunctionAnalysisManager &FAM) {
  auto Run = [&](auto Pass) { FAM.invalidate(F, Pass.run(F, FAM)); };
  Run(SROAPass(SROAOptions::ModifyCFG));
  Run(EarlyCSEPass());
  Run(ADCEPass());
  Run(SimplifyCFGPass());
}

} // namespace holdfast
