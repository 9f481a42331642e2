// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/FrameLocals.h"
#include "analysis/Calls.h"
#include "transform/SplitCopies.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace holdfast {

static AllocaInst *makeLocal(Function &F, Type *T, Align Least) {
  AllocaInst *Local = IRBuilder<>(&*F.getEntryBlock().begin()).CreateAlloca(T);
  Local->setAlignment(std::max(Local->getAlign(), Least));
  return Local;
}

static Instruction *behindAllocas(Function &F) {
  BasicBlock::iterator At = F.getEntryBlock().begin();
  while (isa<AllocaInst>(At))
    ++At;
  return &*At;
}

static void copyPassed(Function &F, Argument &A) {
  Type *T = A.getParamByValType();
  AllocaInst *Local = makeLocal(F, T, A.getParamAlign().valueOrOne());
  A.replaceAllUsesWith(Local);
  IRBuilder<> Builder(behindAllocas(F));
  copyByType(Builder, Local, Local->getAlign(), &A,
             A.getParamAlign().valueOrOne(), T, F.getDataLayout());
}

static void copyResult(Function &F, Argument &A) {
  Type *T = A.getParamStructRetType();
  AllocaInst *Local = makeLocal(F, T, A.getParamAlign().valueOrOne());
  A.replaceAllUsesWith(Local);
  for (BasicBlock &Block : F)
    if (auto *Return = dyn_cast<ReturnInst>(Block.getTerminator())) {
      IRBuilder<> Builder(Return);
      copyByType(Builder, &A, A.getParamAlign().valueOrOne(), Local,
                 Local->getAlign(), T, F.getDataLayout());
    }
}

static void copyPreserved(Function &F, CallBase &Call) {
  uint64_t Bytes = cast<ConstantInt>(Call.getArgOperand(1))->getZExtValue();
  IRBuilder<> Builder(&Call);
  AllocaInst *Local = makeLocal(
      F, ArrayType::get(Builder.getInt8Ty(), std::max<uint64_t>(Bytes, 1)),
      Align(16));
  Builder.CreateMemCpy(Local, Local->getAlign(), Call.getArgOperand(0),
                       MaybeAlign(), Bytes);
  FunctionCallee Mark = F.getParent()->getOrInsertFunction(
      PreserveMark, FunctionType::get(Builder.getVoidTy(), false));
  CallInst *Here = Builder.CreateCall(Mark);
  Here->setDoesNotThrow();
  Here->setOnlyAccessesInaccessibleMemory();
  Call.replaceAllUsesWith(Local);
  Call.eraseFromParent();
}

static void makeIntrinsic(CallBase &Call, const RangeWriter &Shape) {
  IRBuilder<> Builder(&Call);
  Value *To = Call.getArgOperand(Shape.Destination);
  StringRef Name = Shape.Name;
  Value *Bytes, *Length = nullptr;
  if (Shape.Length >= 0) {
    Bytes = Call.getArgOperand(Shape.Length);
  } else {
    FunctionCallee Strlen = Call.getModule()->getOrInsertFunction(
        "strlen", Builder.getInt64Ty(), Builder.getPtrTy());
    Length = Builder.CreateCall(Strlen, Call.getArgOperand(Shape.Source));
    Bytes = Builder.CreateAdd(Length, Builder.getInt64(1));
  }
  if (Name == "bzero")
    Builder.CreateMemSet(To, Builder.getInt8(0), Bytes, MaybeAlign());
  else if (Shape.Source < 0)
    Builder.CreateMemSet(
        To, Builder.CreateTrunc(Call.getArgOperand(1), Builder.getInt8Ty()),
        Bytes, MaybeAlign());
  else
    Builder.CreateMemMove(To, MaybeAlign(), Call.getArgOperand(Shape.Source),
                          MaybeAlign(), Bytes);
  if (!Call.getType()->isVoidTy())
    Call.replaceAllUsesWith(Name == "mempcpy" ? Builder.CreatePtrAdd(To, Bytes)
                            : Name == "stpcpy"
                                ? Builder.CreatePtrAdd(To, Length)
                                : To);
  Call.eraseFromParent();
}

/// Run again, the call must not find its result in what it reads.
static void copyReturned(Function &F, CallInst &Call) {
  for (unsigned A = 0; A != Call.arg_size(); ++A) {
    Type *T = Call.getParamStructRetType(A);
    if (!T)
      continue;
    Value *To = Call.getArgOperand(A);
    AllocaInst *Local = makeLocal(F, T, Call.getParamAlign(A).valueOrOne());
    Call.setArgOperand(A, Local);
    Call.setTailCallKind(CallInst::TCK_None);
    IRBuilder<> Builder(Call.getNextNode());
    Builder.SetCurrentDebugLocation(Call.getDebugLoc());
    Builder.CreateMemCpy(To, Call.getParamAlign(A), Local, Local->getAlign(),
                         F.getDataLayout().getTypeStoreSize(T));
  }
}

void makeFrameLocals(
    Function &F, function_ref<void(const Twine &, const DebugLoc &)> Report) {
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (!Call || isa<IntrinsicInst>(Call))
      continue;
    if (classifyCall(*Call).Kind == CallKind::Preserve) {
      if (isa<ConstantInt>(Call->getArgOperand(1)))
        copyPreserved(F, *Call);
      else
        Report("hf_vlog_preserve of a number of bytes that is not constant: "
               "they have no place in the section's frame; copy them to the "
               "pool before the section",
               Call->getDebugLoc());
    } else if (const RangeWriter *Shape = findRangeWriter(*Call))
      makeIntrinsic(*Call, *Shape);
    else if (auto *Plain = dyn_cast<CallInst>(Call))
      copyReturned(F, *Plain);
  }
  for (Argument &A : F.args()) {
    if (A.hasByValAttr())
      copyPassed(F, A);
    else if (A.hasStructRetAttr())
      copyResult(F, A);
  }
}

bool isOfResult(const Value *Address) {
  const auto *A =
      dyn_cast<Argument>(getUnderlyingObject(Address, /*MaxLookup=*/0));
  return A && A->hasStructRetAttr();
}

} // namespace holdfast
