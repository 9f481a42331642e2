// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// std::stable_sort, inplace_merge and stable_partition ask for a temporary
// buffer, and do without if they get none. A section that runs again takes no
// volatile memory, and in others such a buffer may be slower than none: so operator
// new(nothrow) in get_temporary_buffer returns null there, and nothing
// must be given back.
#include "transform/ReplaceLibraryCalls.h"
#include "analysis/Calls.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace holdfast {

/// Whether the call stands in a library function of that name, inlined or not.
static bool standsIn(const CallInst &Call, StringRef Name) {
  if (Call.getFunction()->getName().contains(Name))
    return true;
  const DILocation *At = Call.getDebugLoc();
  const DISubprogram *Program = At ? At->getScope()->getSubprogram() : nullptr;
  return Program && Program->getName().starts_with(Name);
}

static bool isBufferRequest(const CallInst &Call, StringRef Name) {
  return Name == "_ZnwmRKSt9nothrow_t" &&
         standsIn(Call, "get_temporary_buffer");
}

static bool isBufferReturn(const CallInst &Call, StringRef Name) {
  return (Name == "_ZdlPv" || Name == "_ZdlPvm") &&
         (standsIn(Call, "return_temporary_buffer") ||
          standsIn(Call, "__return_temporary_buffer"));
}

/// A copy of wide characters is one of bytes.
static void makeByteCopy(CallInst &Call, bool MayOverlap) {
  constexpr uint64_t WideBytes = 4;
  IRBuilder<> Builder(&Call);
  Value *To = Call.getArgOperand(0), *From = Call.getArgOperand(1);
  Value *Bytes = Builder.CreateMul(
      Call.getArgOperand(2),
      ConstantInt::get(Call.getArgOperand(2)->getType(), WideBytes));
  const Align Aligned(WideBytes);
  if (MayOverlap)
    Builder.CreateMemMove(To, Aligned, From, Aligned, Bytes);
  else
    Builder.CreateMemCpy(To, Aligned, From, Aligned, Bytes);
  Call.replaceAllUsesWith(To);
  Call.eraseFromParent();
}

/// wmemset with a body, whose stores are instrumented like all others.
static Function *wideFill(Module &M, FunctionType *Shape) {
  constexpr StringLiteral Name = "hf_fill_wide";
  if (Function *There = M.getFunction(Name))
    return There;
  auto *F = Function::Create(Shape, GlobalValue::InternalLinkage, Name, M);
  F->setDoesNotThrow();
  Argument *To = F->getArg(0), *Value = F->getArg(1), *Count = F->getArg(2);
  LLVMContext &C = M.getContext();
  auto *Entry = BasicBlock::Create(C, "", F),
       *Loop = BasicBlock::Create(C, "fill", F),
       *Store = BasicBlock::Create(C, "store", F),
       *End = BasicBlock::Create(C, "end", F);
  IRBuilder<> Builder(Entry);
  Builder.CreateBr(Loop);
  Builder.SetInsertPoint(Loop);
  PHINode *At = Builder.CreatePHI(Count->getType(), 2);
  At->addIncoming(ConstantInt::get(Count->getType(), 0), Entry);
  Builder.CreateCondBr(Builder.CreateICmpEQ(At, Count), End, Store);
  Builder.SetInsertPoint(Store);
  Builder.CreateStore(Value,
                      Builder.CreateInBoundsGEP(Value->getType(), To, {At}));
  At->addIncoming(Builder.CreateAdd(At, ConstantInt::get(At->getType(), 1)),
                  Store);
  Builder.CreateBr(Loop);
  Builder.SetInsertPoint(End);
  Builder.CreateRet(To);
  return F;
}

void replaceLibraryCalls(Function &Instance, const EngineInfo &Engine) {
  Module &M = *Instance.getParent();
  const bool EndsAtNew = !Engine.runsAgain() && !Engine.TakesBack;
  for (Instruction &I : make_early_inc_range(instructions(Instance))) {
    auto *Call = dyn_cast<CallInst>(&I);
    const Function *Callee = Call ? calledFunction(*Call) : nullptr;
    if (!Callee || !Callee->isDeclaration())
      continue;
    StringRef Name = Callee->getName();
    if (Name == "wmemcpy" || Name == "wmemmove") {
      makeByteCopy(*Call, Name == "wmemmove");
    } else if (Name == "wmemset") {
      Call->setCalledFunction(wideFill(M, Call->getFunctionType()));
    } else if (isBufferRequest(*Call, Name)) {
      Call->replaceAllUsesWith(ConstantPointerNull::get(
          PointerType::getUnqual(Instance.getContext())));
      Call->eraseFromParent();
    } else if (isBufferReturn(*Call, Name)) {
      Call->eraseFromParent();
    } else if (std::string Runtime = EndsAtNew && !quietNewOf(Name).empty()
                                         ? quietNewOf(Name).str()
                                         : runtimeVersionOf(Name);
               !Runtime.empty()) {
      // Without the attributes that promise what the library's does.
      FunctionCallee Ours =
          M.getOrInsertFunction(Runtime, Call->getFunctionType());
      Call->setCalledFunction(Call->getFunctionType(), Ours.getCallee());
      Call->removeFnAttr(Attribute::Memory);
    }
  }
}

} // namespace holdfast
