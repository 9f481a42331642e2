// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resolving:
//
// 1. An indirect call of one of few functions, as it shows from selections and
//    from constant tables, becomes a chain of comparisons and direct calls.
// 2. Where a section runs other indirect calls, what it calls is inlined into
//    it and simplified, at every optimisation level: a virtual call on a local
//    object, or a std::function, is then a call of a known function, or gone.
//    What compiles with optimisation compiles without. What LLVM's own inliner
//    may not put there, or the source wants called (InlineRules.h), stays a call,
//    as does what makes a section larger than InstructionsMax.
//
// A txfunc's own body is only ever run in sections (its callers get the entry),
// so it may be rewritten in place. Sections that have no such call stay as they
// are.
#include "transform/ResolveCalls.h"
#include "analysis/Calls.h"
#include "analysis/Names.h"
#include "transform/InlineRules.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/GVN.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/CallPromotionUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace holdfast {

namespace {

constexpr unsigned TargetsMax = 64;
constexpr unsigned RoundsMax = 12;
constexpr unsigned InstructionsMax = 50000; ///< of a section with what is in it

using Targets = SmallSetVector<Function *, 8>;

bool isUnresolved(const CallBase &Call) {
  return !isa<InlineAsm>(Call.getCalledOperand()) && !calledFunction(Call);
}

/// Collects the functions in a constant; false when there is anything else that
/// a function pointer might be read from.
bool collectFunctions(const Constant *C, Targets &Found) {
  if (auto *F = dyn_cast<Function>(C->stripPointerCasts()))
    return Found.insert(const_cast<Function *>(F)), true;
  if (isa<ConstantPointerNull>(C) || isa<ConstantData>(C))
    return true; // no function is called through it
  if (isa<ConstantAggregate>(C))
    return all_of(C->operand_values(), [&](const Value *Part) {
      return collectFunctions(cast<Constant>(Part), Found);
    });
  return isa<GlobalVariable>(C->stripInBoundsConstantOffsets()); // a string
}

/// Collects what a value may be as the target of a call; false when nobody
/// knows.
bool collectTargets(const Value *Called, Targets &Found,
                    SmallPtrSetImpl<const Value *> &Seen) {
  if (!Seen.insert(Called).second)
    return true;
  if (const auto *F = dyn_cast<Function>(Called->stripPointerCasts()))
    return Found.insert(const_cast<Function *>(F)), true;
  if (isa<ConstantPointerNull>(Called) || isa<UndefValue>(Called))
    return true;
  if (const auto *Phi = dyn_cast<PHINode>(Called))
    return all_of(Phi->incoming_values(), [&](const Value *V) {
      return collectTargets(V, Found, Seen);
    });
  if (const auto *Select = dyn_cast<SelectInst>(Called))
    return collectTargets(Select->getTrueValue(), Found, Seen) &&
           collectTargets(Select->getFalseValue(), Found, Seen);
  const auto *Load = dyn_cast<LoadInst>(Called);
  if (!Load)
    return false;
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Load->getPointerOperand(), Objects);
  return all_of(Objects, [&](const Value *Object) {
    const auto *Table = dyn_cast<GlobalVariable>(Object);
    return Table && Table->isConstant() && Table->hasDefinitiveInitializer() &&
           collectFunctions(Table->getInitializer(), Found);
  });
}

class Resolver {
public:
  Resolver(Function &Txfunc, bool CanDispatch, FunctionAnalysisManager &FAM)
      : Txfunc(Txfunc), CanDispatch(CanDispatch), FAM(FAM) {}

  void run() {
    for (unsigned Round = 0; Round != RoundsMax; ++Round) {
      Reached.clear();
      collectReached(Txfunc);
      bool Changed = false;
      for (Function *F : Reached)
        Changed |= promote(*F);
      if (Changed)
        continue;
      if (none_of(Reached, hasUnresolved) || !inlineAll())
        return;
      simplify();
    }
  }

private:
  Function &Txfunc;
  const bool CanDispatch;
  FunctionAnalysisManager &FAM;
  SmallSetVector<Function *, 16> Reached;

  static bool hasUnresolved(const Function *F) {
    return any_of(instructions(*F), [](const Instruction &I) {
      const auto *Call = dyn_cast<CallBase>(&I);
      return Call && isUnresolved(*Call);
    });
  }

  void collectReached(Function &F) {
    if (!Reached.insert(&F))
      return;
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallBase>(&I))
        if (!isUnresolved(*Call) && classifyCall(*Call).Kind == CallKind::Body)
          collectReached(*calledFunction(*Call));
  }

  /// Takes step 1, in helpers, too: they call the same functions elsewhere.
  bool promote(Function &F) const {
    SmallVector<std::pair<CallBase *, Targets>, 4> Known;
    for (Instruction &I : instructions(F)) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || !isUnresolved(*Call) || Call->isMustTailCall())
        continue;
      Targets Found;
      SmallPtrSet<const Value *, 8> Seen;
      if (collectTargets(Call->getCalledOperand(), Found, Seen))
        Found.remove_if(
            [&](Function *T) { return !isLegalToPromote(*Call, T); });
      else
        Found.clear();
      if (CanDispatch &&
          any_of(Found, [](Function *T) { return T->isDeclaration(); }))
        Found.clear(); // another file may have its instance
      if (!Found.empty() && Found.size() <= TargetsMax)
        Known.push_back({Call, std::move(Found)});
    }
    for (auto &[Call, Found] : Known) {
      while (Found.size() > 1)
        promoteCallWithIfThenElse(*Call, Found.pop_back_val());
      promoteCall(*Call, Found.front());
    }
    return !Known.empty();
  }

  /// Takes step 2. Returns false when nothing is left to inline.
  bool inlineAll() {
    bool Any = false;
    uint64_t Instructions = Txfunc.getInstructionCount();
    for (bool Grew = true; Grew;) {
      Grew = false;
      SmallVector<CallBase *, 16> Calls;
      for (Instruction &I : instructions(Txfunc))
        if (auto *Call = dyn_cast<CallBase>(&I))
          if (!isUnresolved(*Call) && !isa<IntrinsicInst>(Call) &&
              classifyCall(*Call).Kind == CallKind::Body && mayInline(*Call))
            Calls.push_back(Call);
      for (CallBase *Call : Calls) {
        const uint64_t More = calledFunction(*Call)->getInstructionCount();
        InlineFunctionInfo Info;
        if (Instructions + More > InstructionsMax ||
            !InlineFunction(*Call, Info, /*MergeAttributes=*/true).isSuccess())
          continue;
        Instructions += More;
        Grew = true;
      }
      Any |= Grew;
    }
    // Even if nothing was inlined, the function's own locals may show the callee.
    Any |= Txfunc.hasOptNone();
    Txfunc.removeFnAttr(Attribute::OptimizeNone);
    return Any;
  }

  /// Constructors and the like matter as much as the code that calls: every
  /// function is inlined, except recursive ones and other txfuncs.
  bool mayInline(const CallBase &Call) const {
    Function &F = *calledFunction(Call);
    return &F != &Txfunc && !isTxfunc(F) && !isRecursive(F) &&
           !isToBeCalled(F) &&
           !Call.getAttributes().hasFnAttr(Attribute::NoInline) &&
           mayInlineInto(Txfunc, F, FAM);
  }

  static bool isRecursive(Function &F) {
    SmallPtrSet<Function *, 16> Seen;
    SmallVector<Function *, 16> Left{&F};
    while (!Left.empty())
      for (Instruction &I : instructions(*Left.pop_back_val())) {
        auto *Call = dyn_cast<CallBase>(&I);
        Function *Callee = Call ? calledFunction(*Call) : nullptr;
        if (Callee == &F)
          return true;
        if (Callee && !Callee->isDeclaration() && Seen.insert(Callee).second)
          Left.push_back(Callee);
      }
    return false;
  }

  void simplify() {
    PassBuilder Builder;
    LoopAnalysisManager Loops;
    FunctionAnalysisManager Functions;
    CGSCCAnalysisManager Components;
    ModuleAnalysisManager Modules;
    Builder.registerModuleAnalyses(Modules);
    Builder.registerCGSCCAnalyses(Components);
    Builder.registerFunctionAnalyses(Functions);
    Builder.registerLoopAnalyses(Loops);
    Builder.crossRegisterProxies(Loops, Functions, Components, Modules);
    FunctionPassManager Passes;
    Passes.addPass(SROAPass(SROAOptions::ModifyCFG));
    Passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
    Passes.addPass(InstCombinePass());
    Passes.addPass(SimplifyCFGPass());
    Passes.addPass(GVNPass());
    Passes.addPass(InstCombinePass());
    Passes.addPass(SimplifyCFGPass());
    Passes.run(Txfunc, Functions);
  }
};

} // namespace

void resolveCalls(ArrayRef<Function *> Txfuncs, bool CanDispatch,
                  FunctionAnalysisManager &FAM) {
  for (Function *F : Txfuncs)
    Resolver(*F, CanDispatch, FAM).run();
}

} // namespace holdfast
