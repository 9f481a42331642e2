// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dispatching:
//
// 1. When a module is loaded, it registers every function whose address it takes
//    and whose body it sees. An entry has the address and the function's instance
//    for sections, or the reason why it lacks one. An unloaded module removes its
//    entries.
// 2. Where a section calls an address, it asks the runtime for the instance and
//    calls that. A function that no module has registered ends the process; the
//    section has changed nothing by then.
//
// The runtime gets the table by a weak symbol: a program without such calls links
// neither the table nor that part of the runtime.
#include "transform/DispatchCalls.h"
#include "analysis/Calls.h"
#include "analysis/SectionRules.h"
#include "transform/EmitEntry.h"
#include "transform/SectionVersions.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumDispatched, "Indirect calls whose instance is looked up");

namespace holdfast {

/// Whether what is called throws, or ends the program: none of it calls what it
/// is given in a section.
static bool isLanguages(const CallBase &Call) {
  const Function *Callee = calledFunction(Call);
  return Callee && Callee->getName().starts_with("__cxa_");
}

/// Whether some use gives the address away. The callee of a call, the compiler's
/// own lists and a function's personality do not.
static bool tellsAddress(const Value &V) {
  return any_of(V.uses(), [](const Use &U) {
    const User *By = U.getUser();
    if (const auto *Call = dyn_cast<CallBase>(By))
      return !Call->isCallee(&U) && !isLanguages(*Call);
    if (const auto *Variable = dyn_cast<GlobalVariable>(By))
      return !Variable->getName().starts_with("llvm.");
    if (isa<Function>(By) || isa<BlockAddress>(By))
      return false;
    return !isa<Constant>(By) || tellsAddress(*By);
  });
}

/// Another file may take the address of a function that is marked for it.
SmallVector<Function *, 8> findCallees(Module &M) {
  SmallVector<Function *, 8> Found;
  // At a link an inline function whose body is kept becomes local and stays in its
  // group, which the linker no longer discards.
  const bool Links = isForLinkTimeOptimisation(M);
  for (Function &F : M) {
    // A local symbol of a group that the linker discards cannot be named.
    bool Nameable = Links || !(F.hasComdat() && F.hasLocalLinkage());
    if (!F.isDeclaration() && !F.isInterposable() && Nameable &&
        !F.hasFnAttribute(Attribute::Naked) &&
        !F.hasFnAttribute(Attribute::PresplitCoroutine) &&
        (tellsAddress(F) || isShared(F)))
      Found.push_back(&F);
  }
  return Found;
}

std::string placeOf(const SectionFunction &F, const CallBase &Call) {
  if (DebugLoc Users = usersLine(F, Call.getDebugLoc()))
    return (Users->getFilename() + ":" + Twine(Users.getLine())).str();
  return "'" + prettyName(*F.Original) + "'";
}

/// The address of what the call reaches. A function of several versions for
/// processors (an ifunc) has one of its own, which is no version's: its
/// resolver says which it is.
static Value *reachedBy(const CallBase &Call, IRBuilder<> &Builder) {
  Value *Called = Call.getCalledOperand();
  auto *Versions = dyn_cast<GlobalIFunc>(Called->stripPointerCastsAndAliases());
  Function *Resolver = Versions ? Versions->getResolverFunction() : nullptr;
  if (!Resolver || Resolver->isDeclaration())
    return Called;
  CallInst *Version = Builder.CreateCall(Resolver);
  Version->setDoesNotThrow();
  return Version;
}

static void dispatch(CallBase &Call, StringRef Find, StringRef Where) {
  ++NumDispatched;
  IRBuilder<> Builder(&Call);
  Module &M = *Call.getModule();
  FunctionCallee Finder = M.getOrInsertFunction(
      Find, FunctionType::get(Builder.getPtrTy(),
                              {Builder.getPtrTy(), Builder.getPtrTy()}, false));
  CallInst *Instance = Builder.CreateCall(
      Finder, {reachedBy(Call, Builder), emitText(M, Where)});
  Instance->setDoesNotThrow();
  Call.setCalledOperand(Instance);
}

void dispatchCalls(const Sections &All) {
  for (const auto &F : All.Functions) {
    SmallVector<CallBase *, 8> Calls;
    for (Instruction &I : instructions(*F->Instance))
      if (auto *Call = dyn_cast<CallBase>(&I);
          Call && classifyCall(*Call).Kind == CallKind::Indirect)
        Calls.push_back(Call);
    for (CallBase *Call : Calls)
      dispatch(*Call, All.Options.Engine->callee("callee"), placeOf(*F, *Call));
  }
}

/// struct hf_redo_callees_row of the ABI header, field by field.
static Constant *emitRow(Module &M, const Callee &C) {
  Constant *None =
      ConstantPointerNull::get(PointerType::getUnqual(M.getContext()));
  return ConstantStruct::getAnon({C.Original, C.Instance ? C.Instance : None,
                                  emitText(M, C.Original->getName()),
                                  C.Instance ? None : emitText(M, C.Why)});
}

void emitCallees(Module &M, ArrayRef<Callee> Callees,
                 const EngineInfo &Engine) {
  SmallVector<Constant *, 16> Rows;
  for (const Callee &C : Callees)
    Rows.push_back(emitRow(M, C));
  auto *T = ArrayType::get(Rows.front()->getType(), Rows.size());
  auto *Table = new GlobalVariable(M, T, true, GlobalValue::InternalLinkage,
                                   ConstantArray::get(T, Rows), "hf_callees");
  emitWeakRegistration(M, Engine.callee("register_callees"),
                       Engine.callee("forget_callees"), *Table, Rows.size());
}

} // namespace holdfast
