// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/WriteRemarks.h"
#include "analysis/BackPointers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"

using namespace llvm;

namespace holdfast {

/// The name by which -Rpass and its sisters ask.
static constexpr char PassName[] = "holdfast";

static StringRef reason(Verdict Why) {
  switch (Why) {
  case Verdict::Fresh:
    return "memory that the section has allocated";
  case Verdict::Covered:
    return "an earlier write of the section covers it";
  case Verdict::NoInput:
    return "the section has not read what it overwrites";
  case Verdict::Logged:
    break;
  }
  llvm_unreachable("a logged write has no reason");
}

void remarkOnWrites(Function &F, ArrayRef<LoggedWrite> Writes,
                    const EngineInfo &Engine) {
  OptimizationRemarkEmitter Emitter(&F);
  if (!Emitter.enabled())
    return;
  const BackPointers Backs(F);
  for (const LoggedWrite &W : Writes) {
    if (!W.Log) {
      Emitter.emit(OptimizationRemark(PassName, "NeedsNoLog", W.Site.At)
                   << "needs no log: " << reason(W.Why));
      continue;
    }
    Emitter.emit(OptimizationRemarkMissed(PassName, "Logged", W.Site.At)
                 << "its old bytes are logged");
    const auto *Back = dyn_cast<StoreInst>(W.Site.At);
    if (!Back || Engine.Logs != LoggedWrites::selected)
      continue;
    if (const StoreInst *Link = Backs.linkOf(*Back))
      Emitter.emit(
          OptimizationRemarkAnalysis(PassName, "CouldBeLazy", Back)
          << "could be hf::lazy, if selective::options::rebuild finds it "
             "again: it follows from the store "
          << (Link->getDebugLoc() && Link->getDebugLoc().getLine() != 0
                  ? "at line " + utostr(Link->getDebugLoc().getLine())
                  : "of the link"));
  }
}

} // namespace holdfast
