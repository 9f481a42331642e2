// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a txfunc does is known when it is instrumented, at the end: its entry
// calls the runtime, which keeps what it is given, reads it in another process
// and counts. The optimiser must not have drawn conclusions from less before:
// from a body that only writes through its arguments it infers that a caller's
// stores to the block it passes, or its reads of a counter, are needless.
//
// 1. At the pipeline's start the body moves to a function of its own. The
//    txfunc passes it, itself and its arguments to a function that nobody
//    defines (SectionGuard).
// 2. So nothing can be inferred about a txfunc's memory, arguments or result;
//    and its parameters stay, since its address is taken: no constant that all
//    callers pass is moved into it, and no parameter away.
// 3. The body is optimised like any other function, and put back before the
//    sections are made. With link-time optimisation that is at the link.
#include "transform/HideBodies.h"
#include "analysis/Names.h"
#include "analysis/SectionRules.h"
#include "transform/ComputedGotos.h"
#include "transform/InsertCalls.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/Cloning.h"

using namespace llvm;

namespace holdfast {

/// Drops the source's promises about the txfunc's memory, which do not hold, and
/// the order to inline a call, which would lose its section.
static void dropCallersPromises(Function &Txfunc) {
  dropPromises(Txfunc);
  Txfunc.removeRetAttr(Attribute::NoAlias);
  for (User *By : Txfunc.users())
    if (auto *Call = dyn_cast<CallBase>(By);
        Call && Call->getCalledOperand() == &Txfunc) {
      dropPromises(*Call);
      Call->removeRetAttr(Attribute::NoAlias);
      Call->removeFnAttr(Attribute::AlwaysInline);
    }
}

static Function *moveBody(Function &Txfunc) {
  Function *Body =
      Function::Create(Txfunc.getFunctionType(), GlobalValue::InternalLinkage,
                       Txfunc.getAddressSpace(),
                       Txfunc.getName() + ".hf_hidden", Txfunc.getParent());
  Body->copyAttributesFrom(&Txfunc);
  Body->setVisibility(GlobalValue::DefaultVisibility);
  Body->setDLLStorageClass(GlobalValue::DefaultStorageClass);
  Body->removeFnAttr(TxfuncAttr);
  Body->removeFnAttr(NameAttr);
  Body->setSubprogram(Txfunc.getSubprogram());
  Txfunc.setSubprogram(nullptr); // no two functions share one
  Txfunc.setPersonalityFn(nullptr);
  Body->splice(Body->begin(), &Txfunc);
  for (unsigned I = 0; I != Txfunc.arg_size(); ++I) {
    Txfunc.getArg(I)->replaceAllUsesWith(Body->getArg(I));
    Body->getArg(I)->setName(Txfunc.getArg(I)->getName());
  }
  return Body;
}

/// Inserts the guard's call: all arguments where they were, then txfunc and
/// body.
static void callGuard(Function &Txfunc, Function &Body) {
  Module &M = *Txfunc.getParent();
  LLVMContext &Context = M.getContext();
  FunctionCallee Guard = M.getOrInsertFunction(
      SectionGuard, FunctionType::get(Type::getVoidTy(Context), false));
  IRBuilder<> Builder(BasicBlock::Create(Context, "", &Txfunc));
  SmallVector<Type *, 8> Types(Txfunc.getFunctionType()->params());
  SmallVector<Value *, 8> Values;
  SmallVector<AttributeSet, 8> Attributes;
  for (Argument &A : Txfunc.args()) {
    Values.push_back(&A);
    Attributes.push_back(Txfunc.getAttributes().getParamAttrs(A.getArgNo()));
  }
  for (Function *Known : {&Txfunc, &Body}) {
    Types.push_back(Known->getType());
    Values.push_back(Known);
  }
  CallInst *Call = Builder.CreateCall(
      FunctionType::get(Txfunc.getReturnType(), Types, false),
      Guard.getCallee(), Values);
  Call->setAttributes(AttributeList::get(
      Context, {}, Txfunc.getAttributes().getRetAttrs(), Attributes));
  if (Txfunc.doesNotThrow())
    Call->setDoesNotThrow();
  if (Txfunc.getReturnType()->isVoidTy())
    Builder.CreateRetVoid();
  else
    Builder.CreateRet(Call);
}

bool hideBody(Function &Txfunc) {
  if (!Txfunc.isDeclaration())
    expandComputedGotos(Txfunc);
  if (Txfunc.isDeclaration() || whyUnfit(Txfunc) ||
      any_of(Txfunc, [](const BasicBlock &B) { return B.hasAddressTaken(); }))
    return false;
  dropCallersPromises(Txfunc);
  callGuard(Txfunc, *moveBody(Txfunc));
  return true;
}

static Function *txfuncOf(const CallBase &Guard) {
  return cast<Function>(Guard.getArgOperand(Guard.arg_size() - 2));
}

/// The txfunc was inlined after all: by a call in a file that did not see what
/// it calls.
static void callAgain(CallBase &Guard) {
  Function *Txfunc = txfuncOf(Guard);
  SmallVector<Value *, 8> Values(Guard.args());
  Values.pop_back_n(2);
  IRBuilder<> Builder(&Guard);
  CallBase *Call;
  if (auto *Invoke = dyn_cast<InvokeInst>(&Guard))
    Call = Builder.CreateInvoke(Txfunc, Invoke->getNormalDest(),
                                Invoke->getUnwindDest(), Values);
  else
    Call = Builder.CreateCall(Txfunc, Values);
  Call->setCallingConv(Txfunc->getCallingConv());
  AttributeList Given = Guard.getAttributes();
  SmallVector<AttributeSet, 8> Attributes;
  for (unsigned I = 0; I != Values.size(); ++I)
    Attributes.push_back(Given.getParamAttrs(I));
  Call->setAttributes(AttributeList::get(Call->getContext(), {},
                                         Given.getRetAttrs(), Attributes));
  Call->takeName(&Guard);
  Guard.replaceAllUsesWith(Call);
  Guard.eraseFromParent();
}

static void reveal(CallBase &Guard) {
  Function *Txfunc = txfuncOf(Guard);
  auto *Body = cast<Function>(Guard.getArgOperand(Guard.arg_size() - 1));
  if (Txfunc->getFunctionType() != Body->getFunctionType())
    report_fatal_error("holdfast: a failure-atomic function was changed "
                       "before it was instrumented");
  if (!Body->hasOneUse()) {
    ValueToValueMapTy Map;
    Body = CloneFunction(Body, Map);
  }
  AttributeList Attributes = Body->getAttributes();
  for (StringRef Kind : {TxfuncAttr, NameAttr})
    if (Txfunc->hasFnAttribute(Kind))
      Attributes = Attributes.addFnAttribute(Txfunc->getContext(),
                                             Txfunc->getFnAttribute(Kind));
  // The optimiser may have found that the body throws nothing. The section's end
  // may still throw, and the callers expect it.
  if (!Txfunc->doesNotThrow())
    Attributes = Attributes.addFnAttribute(
        Txfunc->getContext(),
        Attribute::get(Txfunc->getContext(), MayThrowAttr));
  GlobalValue::LinkageTypes Linkage = Txfunc->getLinkage();
  Txfunc->deleteBody();
  Txfunc->setLinkage(Linkage);
  Txfunc->setAttributes(Attributes);
  if (Body->hasPersonalityFn())
    Txfunc->setPersonalityFn(Body->getPersonalityFn());
  Txfunc->splice(Txfunc->begin(), Body);
  for (unsigned I = 0; I != Body->arg_size(); ++I) {
    Body->getArg(I)->replaceAllUsesWith(Txfunc->getArg(I));
    Txfunc->getArg(I)->takeName(Body->getArg(I));
  }
  Txfunc->copyMetadata(Body, /*Offset=*/0);
  Body->eraseFromParent();
}

void revealBodies(Module &M) {
  Function *Guard = M.getFunction(SectionGuard);
  if (!Guard)
    return;
  for (User *By : make_early_inc_range(Guard->users()))
    if (auto *Call = cast<CallBase>(By); Call->getFunction() != txfuncOf(*Call))
      callAgain(*Call);
  for (User *Call : make_early_inc_range(Guard->users()))
    reveal(*cast<CallBase>(Call));
  Guard->eraseFromParent();
}

} // namespace holdfast
