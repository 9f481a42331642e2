// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/SplitCopies.h"
#include "analysis/Origin.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

#define DEBUG_TYPE "holdfast-relocate"

using namespace llvm;

STATISTIC(NumSplit, "Copies of structs split at their pointers");

namespace holdfast {

static constexpr uint64_t WordBytes = 8;
static constexpr StringLiteral Mark = "holdfast.relocatable";

bool isRelocatable(const Module &M) { return M.getNamedMetadata(Mark); }

bool isPointerTag(const MDNode *Tag) {
  if (!Tag || Tag->getNumOperands() < 3)
    return false;
  // "any pointer", or a pointer to a certain type, whose parent that is.
  const auto *Type = dyn_cast_or_null<MDNode>(Tag->getOperand(1));
  while (Type && Type->getNumOperands() != 0) {
    const auto *Name = dyn_cast<MDString>(Type->getOperand(0));
    if (Name && Name->getString() == "any pointer")
      return true;
    Type = Type->getNumOperands() < 2
               ? nullptr
               : dyn_cast_or_null<MDNode>(Type->getOperand(1));
  }
  return false;
}

namespace {

struct PointerField {
  uint64_t Offset;
  MDNode *Tag;
};

/// Returns the pointers among the fields that a copy's metadata lists, in
/// order.
SmallVector<PointerField, 8> pointersIn(const MDNode &Fields, uint64_t Bytes) {
  SmallVector<PointerField, 8> Found;
  uint64_t End = 0;
  for (unsigned I = 0; I + 3 <= Fields.getNumOperands(); I += 3) {
    auto Number = [&](unsigned Operand) {
      return mdconst::extract<ConstantInt>(Fields.getOperand(Operand))
          ->getZExtValue();
    };
    auto *Tag = dyn_cast_or_null<MDNode>(Fields.getOperand(I + 2));
    if (!isPointerTag(Tag))
      continue;
    for (uint64_t At = Number(I); At + WordBytes <= Number(I) + Number(I + 1);
         At += WordBytes) {
      if (At < End || At + WordBytes > Bytes)
        continue; // fields of a union: the code that reads the bytes checks them
      Found.push_back({At, Tag});
      End = At + WordBytes;
    }
  }
  return Found;
}

/// Copies bytes, the pointers among them as pointers.
void copyInPieces(IRBuilderBase &Builder, Value *To, Align ToAlign, Value *From,
                  Align FromAlign, uint64_t Bytes,
                  ArrayRef<PointerField> Fields) {
  auto At = [&](Value *Base, uint64_t Offset) {
    return Offset == 0
               ? Base
               : Builder.CreateInBoundsPtrAdd(Base, Builder.getInt64(Offset));
  };
  auto CopyBetween = [&](uint64_t Begin, uint64_t End) {
    if (Begin < End)
      Builder.CreateMemCpy(At(To, Begin), commonAlignment(ToAlign, Begin),
                           At(From, Begin), commonAlignment(FromAlign, Begin),
                           End - Begin);
  };
  uint64_t Done = 0;
  for (const PointerField &Field : Fields) {
    CopyBetween(Done, Field.Offset);
    LoadInst *Value =
        Builder.CreateAlignedLoad(Builder.getPtrTy(), At(From, Field.Offset),
                                  commonAlignment(FromAlign, Field.Offset));
    StoreInst *Store = Builder.CreateAlignedStore(
        Value, At(To, Field.Offset), commonAlignment(ToAlign, Field.Offset));
    if (Field.Tag) {
      Value->setMetadata(LLVMContext::MD_tbaa, Field.Tag);
      Store->setMetadata(LLVMContext::MD_tbaa, Field.Tag);
    }
    Done = Field.Offset + WordBytes;
  }
  CopyBetween(Done, Bytes);
}

/// Replaces the copy. Its memory does not overlap, or is the same.
void split(MemCpyInst &Copy, uint64_t Bytes, ArrayRef<PointerField> Fields) {
  IRBuilder<> Builder(&Copy);
  copyInPieces(Builder, Copy.getDest(), Copy.getDestAlign().valueOrOne(),
               Copy.getSource(), Copy.getSourceAlign().valueOrOne(), Bytes,
               Fields);
  Copy.eraseFromParent();
  ++NumSplit;
}

void addPointersIn(Type *T, uint64_t Offset, const DataLayout &Layout,
                   SmallVectorImpl<PointerField> &Found) {
  if (T->isPointerTy()) {
    Found.push_back({Offset, nullptr});
  } else if (auto *Struct = dyn_cast<StructType>(T)) {
    const StructLayout *Fields = Layout.getStructLayout(Struct);
    for (unsigned I = 0; I != Struct->getNumElements(); ++I)
      addPointersIn(Struct->getElementType(I),
                    Offset + Fields->getElementOffset(I), Layout, Found);
  } else if (auto *Array = dyn_cast<ArrayType>(T)) {
    uint64_t Bytes = Layout.getTypeAllocSize(Array->getElementType());
    for (uint64_t I = 0; I != Array->getNumElements(); ++I)
      addPointersIn(Array->getElementType(), Offset + I * Bytes, Layout, Found);
  }
}

void splitCopies(Function &F, uint64_t BytesMax) {
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Copy = dyn_cast<MemCpyInst>(&I);
    if (!Copy || Copy->isVolatile())
      continue;
    auto *Length = dyn_cast<ConstantInt>(Copy->getLength());
    MDNode *Fields = Copy->getMetadata(LLVMContext::MD_tbaa_struct);
    if (!Length || !Fields || Length->getZExtValue() > BytesMax)
      continue;
    auto Found = pointersIn(*Fields, Length->getZExtValue());
    if (!Found.empty())
      split(*Copy, Length->getZExtValue(), Found);
  }
}

} // namespace

void copyByType(IRBuilderBase &Builder, Value *To, Align ToAlign, Value *From,
                Align FromAlign, Type *T, const DataLayout &Layout) {
  SmallVector<PointerField, 8> Found;
  addPointersIn(T, 0, Layout, Found);
  copyInPieces(Builder, To, ToAlign, From, FromAlign,
               Layout.getTypeStoreSize(T), Found);
}

/// The struct that a call returns to memory which may be PM, where no instance
/// stores it; else null. Only calls of instances are left by exceptions.
static Type *returnedByOthers(const CallInst &Call,
                              ArrayRef<Function *> Instances) {
  if (Call.arg_size() == 0 || is_contained(Instances, Call.getCalledFunction()))
    return nullptr;
  Type *T = Call.getParamStructRetType(0);
  return T && mayBePM(Call.getArgOperand(0)) ? T : nullptr;
}

void returnByWayOfLocals(ArrayRef<Function *> Instances) {
  for (Function *F : Instances) {
    const DataLayout &Layout = F->getDataLayout();
    for (Instruction &I : make_early_inc_range(instructions(*F))) {
      auto *Call = dyn_cast<CallInst>(&I);
      Type *T = Call ? returnedByOthers(*Call, Instances) : nullptr;
      if (!T)
        continue;
      Value *To = Call->getArgOperand(0);
      const Align Known = Call->getParamAlign(0).valueOrOne();
      IRBuilder<> Entry(&*F->getEntryBlock().begin());
      AllocaInst *Local = Entry.CreateAlloca(T);
      Local->setAlignment(std::max(Local->getAlign(), Known));
      Call->setArgOperand(0, Local);
      Call->setTailCallKind(CallInst::TCK_None);
      IRBuilder<> Builder(Call->getNextNode());
      Builder.SetCurrentDebugLocation(Call->getDebugLoc());
      copyByType(Builder, To, Known, Local, Local->getAlign(), T, Layout);
    }
  }
}

PreservedAnalyses SplitCopiesPass::run(Module &M, ModuleAnalysisManager &) {
  M.getOrInsertNamedMetadata(Mark);
  for (Function &F : M)
    splitCopies(F, UINT64_MAX);
  return PreservedAnalyses::none();
}

PreservedAnalyses SplitWordCopiesPass::run(Module &M, ModuleAnalysisManager &) {
  for (Function &F : M)
    splitCopies(F, WordBytes);
  return PreservedAnalyses::none();
}

} // namespace holdfast
