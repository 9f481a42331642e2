// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cloning:
//
// 1. Each txfunc gets an internal instance of its body. What is passed to the
//    txfunc by address is passed to the instance by value.
// 2. Where a section can be taken back, unwinding stays, except at calls of
//    library functions that throw nothing. Elsewhere an instance has no
//    unwinding. Nothing in a section can throw (SectionRules.cpp makes sure), so
//    an invoke becomes a call. The library's out-of-line throws end the process,
//    as they would at the edge of a noexcept function.
// 3. Masked and scattered stores become branches and plain stores
//    (MaskedAccesses.h). Masked and gathered loads do as well, where writes are
//    buffered or sections resume. Addresses computed from null become numbers.
// 4. Every call to a visible body goes to that function's helper instance, made
//    on first use, which also ends recursion. A txfunc called here is a helper
//    like any other: it joins the section.
// 5. Functions that only indirect calls may reach come last. So an instance is
//    Possible exactly if no direct calls lead from a section to it.
#include "transform/CloneSections.h"
#include "analysis/Calls.h"
#include "transform/ComputedGotos.h"
#include "transform/MaskedAccesses.h"
#include "transform/ReplaceLibraryCalls.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumHelpers, "Helper functions cloned for use in sections");

namespace holdfast {

namespace {

class Cloner {
public:
  explicit Cloner(const SectionOptions &Options) { All.Options = Options; }

  Sections All;

  void addEntry(Function &Txfunc) {
    makeInstance(Txfunc, Role::Entry, ".hf_body", Txfunc);
  }

  void finish() {
    for (; Prepared < All.Functions.size(); ++Prepared) // makeInstance appends
      prepare(*All.Functions[Prepared]);
  }

  Function *addHelper(Function &F) {
    Function *&Helper = Helpers[&F];
    if (!Helper)
      Helper = makeInstance(F, Role::Helper, ".hf", F);
    return Helper;
  }

  void addCallee(Function &F) {
    Possible = true;
    All.Callees.push_back({&F, addHelper(F), ""});
  }

private:
  size_t Prepared = 0;
  bool Possible = false;
  DenseMap<const Function *, Function *> Helpers;

  Function *makeInstance(Function &F, Role As, StringRef Suffix,
                         Function &ReachedFrom,
                         const SectionFunction *CalledIn = nullptr,
                         DebugLoc CalledAt = {}) {
    ValueToValueMapTy Map;
    expandComputedGotos(F);
    Function *Instance = CloneFunction(&F, Map);
    Instance->setName(F.getName() + Suffix);
    Instance->setComdat(nullptr);
    Instance->setVisibility(GlobalValue::DefaultVisibility);
    Instance->setDLLStorageClass(GlobalValue::DefaultStorageClass);
    Instance->setLinkage(GlobalValue::InternalLinkage);
    Instance->removeFnAttr(TxfuncAttr);
    Instance->removeFnAttr(SectionAttr);
    Instance->removeFnAttr(NameAttr);
    Instance->removeFnAttr(MayThrowAttr);
    if (As == Role::Entry)
      takeByValue(*Instance);
    All.Functions.push_back(std::make_unique<SectionFunction>(
        SectionFunction{&F, Instance, As, &ReachedFrom, CalledIn,
                        std::move(CalledAt), Possible}));
    return Instance;
  }

  static void takeByValue(Function &Instance) {
    for (Argument &A : Instance.args())
      if (Type *T = A.getParamByRefType()) {
        A.removeAttr(Attribute::ByRef);
        A.addAttr(Attribute::getWithByValType(A.getContext(), T));
      }
  }

  void prepare(SectionFunction &F) {
    if (All.Options.Engine->TakesBack) {
      keepUnwinding(*F.Instance);
    } else {
      removeUnwinding(F);
      endThrows(F);
    }
    const EngineInfo &Engine = *All.Options.Engine;
    expandMasked(*F.Instance, /*Loads=*/Engine.Logs == LoggedWrites::buffered ||
                                  Engine.resumes());
    showAddressesFromNull(*F.Instance);
    replaceLibraryCalls(*F.Instance, Engine);
    for (Instruction &I : instructions(*F.Instance)) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call)
        continue;
      dropNoAlias(*Call);
      if (classifyCall(*Call).Kind == CallKind::Body)
        Call->setCalledOperand(helperFor(*calledFunction(*Call), F, *Call));
      if (int Back = calledBack(*Call); Back >= 0)
        callBackHelper(*Call, unsigned(Back), F);
    }
  }

  /// Clones a comparison function of qsort: what it calls runs in the section
  /// as well.
  void callBackHelper(CallBase &Call, unsigned Argument,
                      const SectionFunction &In) {
    auto *F =
        dyn_cast<Function>(Call.getArgOperand(Argument)->stripPointerCasts());
    if (F && !F->isDeclaration() && !F->isInterposable())
      Call.setArgOperand(Argument, helperFor(*F, In, Call));
  }

  void endThrows(const SectionFunction &F) {
    SmallVector<CallInst *, 4> Throws;
    for (Instruction &I : instructions(*F.Instance))
      if (auto *Call = dyn_cast<CallInst>(&I))
        if (classifyCall(*Call).Kind == CallKind::Throws)
          Throws.push_back(Call);
    if (Throws.empty())
      return;
    All.Throwers.insert(F.Instance);
    for (CallInst *Call : Throws)
      replaceByAbort(*Call);
    removeUnreachableBlocks(*F.Instance);
  }

  Function *helperFor(Function &F, const SectionFunction &In,
                      const CallBase &Call) {
    Function *&Helper = Helpers[&F];
    if (!Helper) {
      ++NumHelpers;
      Helper = makeInstance(F, Role::Helper, ".hf", *In.ReachedFrom, &In,
                            Call.getDebugLoc());
    }
    return Helper;
  }

  /// A 'malloc' attribute on application code is no proof of freshness (see
  /// findFreshFunctions), and alias analysis must not take it for one.
  static void dropNoAlias(CallBase &Call) {
    const Function *Callee = calledFunction(Call);
    if (Callee && classifyCall(Call).Kind != CallKind::Body)
      return;
    Call.removeRetAttr(Attribute::NoAlias);
  }

  /// Leaves the rest of the block, which may be another such call, without its
  /// instructions.
  static void replaceByAbort(CallInst &Call) {
    Module &M = *Call.getModule();
    FunctionCallee Abort =
        M.getOrInsertFunction("abort", Type::getVoidTy(M.getContext()));
    CallInst *New = CallInst::Create(Abort, "", Call.getIterator());
    New->setDebugLoc(Call.getDebugLoc());
    New->setDoesNotReturn();
    changeToUnreachable(&Call);
  }

  static void keepUnwinding(Function &F) {
    removeUnreachableBlocks(F);
    for (BasicBlock &Block : F)
      if (auto *Invoke = dyn_cast<InvokeInst>(Block.getTerminator());
          Invoke && !mayUnwind(*Invoke))
        changeToCall(Invoke);
    removeUnreachableBlocks(F);
  }

  void removeUnwinding(SectionFunction &F) {
    // Unoptimised code has blocks that nothing leads to, handlers among them.
    removeUnreachableBlocks(*F.Instance);
    bool Any = false;
    for (BasicBlock &Block : *F.Instance) {
      auto *Invoke = dyn_cast<InvokeInst>(Block.getTerminator());
      if (!Invoke)
        continue;
      Any = true;
      bool Handled = hasHandler(*Invoke->getLandingPadInst());
      CallInst *Call = changeToCall(Invoke);
      if (Handled)
        noteHandled(F, *Call);
    }
    if (!Any)
      return;
    removeUnreachableBlocks(*F.Instance);
    if (none_of(*F.Instance, [](const BasicBlock &B) { return B.isEHPad(); }))
      F.Instance->setPersonalityFn(nullptr);
  }

  /// Whether some catch clause of the program, which does not only clean up and throw on,
  /// is reached from here, behind cleanups too.
  /// noexcept has a clause as well, whose way ends in a call that terminates.
  static bool hasHandler(const LandingPadInst &Pad) {
    if (Pad.getNumClauses() == 0)
      return false;
    SmallPtrSet<const BasicBlock *, 8> Seen{Pad.getParent()};
    SmallVector<const BasicBlock *, 8> Ways{Pad.getParent()};
    while (!Ways.empty()) {
      const BasicBlock *Block = Ways.pop_back_val();
      const auto Calls = [&](auto Is) {
        return any_of(*Block, [&](const Instruction &I) {
          const auto *Call = dyn_cast<CallBase>(&I);
          return Call && Is(*Call);
        });
      };
      if (Calls([](const CallBase &Call) {
            return classifyCall(Call).Kind == CallKind::Terminates;
          }))
        continue;
      if (Calls([](const CallBase &Call) {
            const Function *Called = Call.getCalledFunction();
            return Called && (Called->getName() == "__cxa_begin_catch" ||
                              Called->getName() == "__cxa_call_unexpected");
          })) {
        if (!throwsOn(*Block))
          return true;
        continue;
      }
      for (const BasicBlock *Next : successors(Block))
        if (Seen.insert(Next).second)
          Ways.push_back(Next);
    }
    return false;
  }

  /// Whether each way from a handler's start, if nothing throws, ends where the
  /// exception goes on.
  static bool throwsOn(const BasicBlock &Handler) {
    SmallPtrSet<const BasicBlock *, 8> Seen{&Handler};
    SmallVector<const BasicBlock *, 8> Ways{&Handler};
    while (!Ways.empty()) {
      const BasicBlock *Block = Ways.pop_back_val();
      for (const Instruction &I : *Block)
        if (const auto *Call = dyn_cast<CallBase>(&I))
          if (const Function *Called = Call->getCalledFunction();
              Called && Called->getName() == "__cxa_end_catch")
            return false;
      if (isa<ReturnInst>(Block->getTerminator()))
        return false;
      const auto *Invoke = dyn_cast<InvokeInst>(Block->getTerminator());
      for (const BasicBlock *Next : successors(Block))
        if (!(Invoke && Next == Invoke->getUnwindDest()) &&
            Seen.insert(Next).second)
          Ways.push_back(Next);
    }
    return true;
  }

  void noteHandled(SectionFunction &F, CallInst &Call) {
    switch (classifyCall(Call).Kind) {
    case CallKind::Body:
      // prepare() has not redirected it yet; the helper is the same either way.
      All.Handled.push_back(
          {&F, helperFor(*calledFunction(Call), F, Call), Call.getDebugLoc()});
      break;
    case CallKind::Throws:
      All.Handled.push_back({&F, nullptr, Call.getDebugLoc()});
      break;
    default:
      break;
    }
  }
};

} // namespace

Sections cloneSections(ArrayRef<Function *> Txfuncs,
                       ArrayRef<Function *> Shared,
                       ArrayRef<Function *> Callees,
                       const SectionOptions &Options) {
  Cloner C(Options);
  for (Function *F : Txfuncs)
    C.addEntry(*F);
  C.finish();
  for (Function *F : Shared)
    C.addHelper(*F);
  C.finish();
  for (Function *F : Callees)
    C.addCallee(*F);
  C.finish();
  // Results of helpers: nothing is promised about them either.
  for (const auto &F : C.All.Functions)
    F->Instance->removeRetAttr(Attribute::NoAlias);
  return std::move(C.All);
}

void dropUnfit(Sections &All) {
  DenseMap<const Value *, SectionFunction *> Of;
  for (const auto &F : All.Functions)
    Of[F->Instance] = F.get();
  // Calls it, or has it called back.
  auto UsesUnfit = [&](const Instruction &I) -> const SectionFunction * {
    for (const Value *Operand : I.operand_values())
      if (const SectionFunction *F = Of.lookup(Operand); F && !F->Unfit.empty())
        return F;
    return nullptr;
  };
  for (bool Changed = true; Changed;) {
    Changed = false;
    for (const auto &F : All.Functions)
      for (const Instruction &I : instructions(*F->Instance))
        if (const SectionFunction *Used =
                F->Unfit.empty() ? UsesUnfit(I) : nullptr) {
          F->Unfit = Used->Unfit;
          Changed = true;
        }
  }
  for (Callee &C : All.Callees)
    if (const SectionFunction &F = *Of[C.Instance]; !F.Unfit.empty()) {
      OptimizationRemarkEmitter Emitter(C.Original);
      Emitter.emit([&] {
        return OptimizationRemarkAnalysis("holdfast", "Unfit",
                                          C.Original->getSubprogram(),
                                          &C.Original->getEntryBlock())
               << "'" << prettyName(*C.Original)
               << "' may be called by its address, and is unfit for a section: "
               << F.Unfit;
      });
      C.Why = F.Unfit;
      C.Instance = nullptr;
    }
  for (const auto &F : All.Functions)
    if (F->CalledIn && !F->CalledIn->Unfit.empty()) {
      F->CalledIn =
          nullptr; // others lead here as well, from where nobody knows
      F->CalledAt = {};
    }
  SmallVector<Function *, 8> Dropped;
  erase_if(All.Functions, [&](const std::unique_ptr<SectionFunction> &F) {
    if (!F->Unfit.empty())
      Dropped.push_back(F->Instance);
    return !F->Unfit.empty();
  });
  for (Function *F : Dropped)
    F->dropAllReferences();
  for (Function *F : Dropped)
    F->eraseFromParent();
}

} // namespace holdfast
