// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/InlineHelpers.h"
#include "analysis/Calls.h"
#include "analysis/SectionRules.h"
#include "transform/InlineRules.h"
#include "transform/InsertCalls.h"

#include "holdfast/abi/justdo_abi.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumFramed,
          "Helpers of sections that resume with frames of their own");

namespace holdfast {

using Functions = SmallPtrSet<const Function *, 16>;

// Instructions: what copies of a helper may add, and what one copy may have.
static cl::opt<unsigned>
    Growth("holdfast-frame-growth", cl::Hidden, cl::init(500),
           cl::desc("Instructions that copies of a helper may add to sections "
                    "that resume: beyond, it gets a frame of its own"));
static constexpr uint64_t LargestCopy = 20000;
/// Bytes of locals that stay in memory; a frame holds about four times as many.
static constexpr uint64_t LocalBytesMax = HF_JUSTDO_FRAME_BYTES_MAX / 4;

namespace {

/// Decides which helpers keep their bodies to themselves, callees first:
///
/// 1. One that recurses has to.
/// 2. One whose copies would add much code, or which is very large, or has large
///    locals: what is put into others is counted with them, so what they come
///    to is bounded, however helpers call each other.
/// 3. But none that preserves volatile bytes: its callers read them once.
/// 4. One that may not be put where it is called (InlineRules.h): it is
///    compiled for another processor, say. That it preserves is an error then.
class FramePlan {
public:
  FramePlan(const Sections &All, FunctionAnalysisManager &FAM) : FAM(FAM) {
    for (const auto &F : All.Functions)
      if (F->As == Role::Helper)
        Helpers.insert(F->Instance);
    for (const auto &F : All.Functions)
      for (const Function *Callee : calleesOf(*F->Instance))
        ++Sites[Callee];
    for (const auto &F : All.Functions)
      visit(*F->Instance);
    for (bool Grew = true; Grew;) {
      Grew = false;
      for (const auto &F : All.Functions)
        if (!Helpers.contains(F->Instance) || Framed.contains(F->Instance))
          Grew |= frameUnfit(*F->Instance);
    }
  }
  Functions Framed;
  /// The helpers of (4) that preserve.
  Functions Unfit;

private:
  struct Weight {
    uint64_t Instructions = 0, LocalBytes = 0;
    bool Preserves = false;
  };
  FunctionAnalysisManager &FAM;
  Functions Helpers;
  DenseMap<const Function *, uint64_t> Sites;
  DenseMap<const Function *, Weight> Weights;

  /// One for each call.
  static SmallVector<const Function *, 16> calleesOf(const Function &F) {
    SmallVector<const Function *, 16> Found;
    for (const Instruction &I : instructions(F))
      if (const auto *Call = dyn_cast<CallBase>(&I);
          Call && classifyCall(*Call).Kind == CallKind::Body)
        Found.push_back(calledFunction(*Call));
    return Found;
  }

  /// Whether it calls itself, directly or by others.
  static bool recurses(const Function &F) {
    Functions Reached;
    SmallVector<const Function *, 16> Left{&F};
    while (!Left.empty())
      for (const Function *Callee : calleesOf(*Left.pop_back_val()))
        if (Reached.insert(Callee).second)
          Left.push_back(Callee);
    return Reached.contains(&F);
  }

  /// Frames what would be put into 'Root', which stays a function, and may not
  /// be. Returns whether there is any.
  bool frameUnfit(Function &Root) {
    bool Any = false;
    Functions Seen;
    SmallVector<const Function *, 16> Left = calleesOf(Root);
    while (!Left.empty()) {
      auto &Callee = const_cast<Function &>(*Left.pop_back_val());
      if (Framed.contains(&Callee) || !Seen.insert(&Callee).second)
        continue;
      if (mayInlineInto(Root, Callee, FAM)) {
        append_range(Left, calleesOf(Callee));
        continue;
      }
      Framed.insert(&Callee);
      Any = true;
      if (Weights[&Callee].Preserves)
        Unfit.insert(&Callee);
    }
    return Any;
  }

  void visit(const Function &F) {
    if (!Weights.try_emplace(&F).second)
      return; // done, or under way: it recurses
    Weight Own;
    for (const Instruction &I : instructions(F)) {
      ++Own.Instructions;
      const auto *Call = dyn_cast<CallBase>(&I);
      Own.Preserves |= Call && classifyCall(*Call).Kind == CallKind::Preserve;
      if (const auto *Local = dyn_cast<AllocaInst>(&I))
        if (auto Bytes = Local->getAllocationSize(F.getDataLayout()))
          Own.LocalBytes += Bytes->getFixedValue();
    }
    for (const Function *Callee : calleesOf(F)) {
      visit(*Callee);
      if (Framed.contains(Callee))
        continue;
      const Weight &Part = Weights[Callee];
      Own.Instructions += Part.Instructions;
      Own.LocalBytes += Part.LocalBytes;
      Own.Preserves |= Part.Preserves;
    }
    uint64_t Added = (Sites.lookup(&F) - 1) * Own.Instructions;
    bool IsLarge = Added > Growth || Own.Instructions > LargestCopy ||
                   Own.LocalBytes > LocalBytesMax;
    if (Helpers.contains(&F) && (recurses(F) || (IsLarge && !Own.Preserves)))
      Framed.insert(&F);
    Weights[&F] = Own;
  }
};

} // namespace

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
    InlineResult Done = InlineFunction(*Call, Info, /*MergeAttributes=*/true);
    if (!Done.isSuccess())
      report_fatal_error(Twine("holdfast: a section's helper cannot be put "
                               "into it: ") +
                         Done.getFailureReason());
    append_range(Left, Info.InlinedCallSites);
  }
}

bool inlineHelpers(Sections &All, FunctionAnalysisManager &FAM) {
  const FramePlan Plan(All, FAM);
  const Functions &Framed = Plan.Framed;
  for (const auto &F : All.Functions)
    if (Plan.Unfit.contains(F->Instance))
      reportError(*F->Original,
                  "'" + prettyName(*F->Original) +
                      "' preserves bytes, and the compiler cannot inline it "
                      "into the section that calls it: preserve in the section "
                      "itself" +
                      placeInWords(*F),
                  usersLine(*F, F->CalledAt));
  if (!Plan.Unfit.empty())
    return false;
  NumFramed += Framed.size();
  for (const auto &F : All.Functions)
    if (Framed.contains(F->Instance))
      dropPromises(*F->Instance); // it will write to its frame
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
  return true;
}

void promoteLocals(Function &F, FunctionAnalysisManager &FAM) {
  auto Run = [&](auto Pass) { FAM.invalidate(F, Pass.run(F, FAM)); };
  Run(SROAPass(SROAOptions::ModifyCFG));
  Run(EarlyCSEPass());
  Run(ADCEPass());
  Run(SimplifyCFGPass());
}

} // namespace holdfast
