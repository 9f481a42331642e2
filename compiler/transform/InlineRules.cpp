// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/InlineRules.h"

#include "llvm/Analysis/InlineCost.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Attributes.h"

using namespace llvm;

namespace holdfast {

static bool agreeOnUnwinding(const Function &Caller, const Function &Callee) {
  if (Callee.hasGC() && Caller.hasGC() && Callee.getGC() != Caller.getGC())
    return false;
  return !Callee.hasPersonalityFn() || !Caller.hasPersonalityFn() ||
         Callee.getPersonalityFn()->stripPointerCasts() ==
             Caller.getPersonalityFn()->stripPointerCasts();
}

bool mayInlineInto(Function &Caller, Function &Callee,
                   FunctionAnalysisManager &FAM) {
  if (Callee.isDeclaration() || Callee.isPresplitCoroutine() ||
      Callee.hasFnAttribute(Attribute::Naked) ||
      !isInlineViable(Callee).isSuccess() || !agreeOnUnwinding(Caller, Callee))
    return false;
  if (!Caller.nullPointerIsDefined() && Callee.nullPointerIsDefined())
    return false;
  return FAM.getResult<TargetIRAnalysis>(Callee).areInlineCompatible(&Caller,
                                                                     &Callee) &&
         FAM.getResult<TargetLibraryAnalysis>(Caller).areInlineCompatible(
             FAM.getResult<TargetLibraryAnalysis>(Callee),
             /*AllowCallerSuperset=*/true) &&
         AttributeFuncs::areInlineCompatible(Caller, Callee);
}

bool isToBeCalled(const Function &F) {
  return F.hasFnAttribute(Attribute::NoInline) && !F.hasOptNone();
}

} // namespace holdfast
