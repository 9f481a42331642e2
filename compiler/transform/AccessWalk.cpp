// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/AccessWalk.h"
#include "analysis/LibraryAccesses.h"

#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

namespace holdfast {

namespace {

class Walk {
public:
  Walk(Instruction &I, const TargetLibraryInfo &Library,
       function_ref<void(const MemoryAccess &)> Visit)
      : I(I), Library(Library), Visit(Visit) {}

  void run() {
    if (auto *Load = dyn_cast<LoadInst>(&I))
      single(Load->getPointerOperand(), nullptr, Load->getType());
    else if (auto *Store = dyn_cast<StoreInst>(&I))
      single(nullptr, Store->getPointerOperand(),
             Store->getValueOperand()->getType());
    else if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
      single(Update->getPointerOperand(), Update->getPointerOperand(),
             Update->getType());
    else if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
      single(Exchange->getPointerOperand(), Exchange->getPointerOperand(),
             Exchange->getNewValOperand()->getType());
    else if (auto *Call = dyn_cast<CallBase>(&I))
      visitCall(*Call);
  }

private:
  Instruction &I;
  const TargetLibraryInfo &Library;
  function_ref<void(const MemoryAccess &)> Visit;

  Value *bytesOf(Type *T) const {
    return ConstantInt::get(
        Type::getInt64Ty(I.getContext()),
        I.getDataLayout().getTypeStoreSize(T).getKnownMinValue());
  }

  void single(Value *From, Value *To, Type *T) {
    Visit({&I, MemoryAccess::Single, From, To, bytesOf(T), T});
  }

  void visitCall(CallBase &Call) {
    for (unsigned A = 0; A != Call.arg_size(); ++A)
      if (Type *T = Call.getParamByValType(A))
        Visit({&I, MemoryAccess::Passed, Call.getArgOperand(A), nullptr,
               bytesOf(T), T});
    if (auto *Memory = dyn_cast<AnyMemIntrinsic>(&Call)) {
      auto *Transfer = dyn_cast<AnyMemTransferInst>(Memory);
      Visit({&I, MemoryAccess::Bytes,
             Transfer ? Transfer->getRawSource() : nullptr,
             Memory->getRawDest(), Memory->getLength()});
    } else if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&Call)) {
      visitMasked(*Intrinsic);
    } else if (const LibraryCall *Shape = findLibraryCall(Call, Library)) {
      visitLibraryCall(Call, *Shape);
    }
  }

  void visitMasked(IntrinsicInst &Call) {
    auto Operand = [&](unsigned A) { return Call.getArgOperand(A); };
    switch (Call.getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_gather:
      return lanes(Operand(0), nullptr, Call.getType(), Operand(2));
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
      return lanes(nullptr, Operand(1), Operand(0)->getType(), Operand(3));
    case Intrinsic::masked_expandload:
      return Visit({&I, MemoryAccess::Packed, Operand(0), nullptr,
                    bytesOf(Call.getType()), Call.getType(), Operand(1)});
    case Intrinsic::masked_compressstore:
      return Visit({&I, MemoryAccess::Packed, nullptr, Operand(1),
                    bytesOf(Operand(0)->getType()), Operand(0)->getType(),
                    Operand(2)});
    default:
      return;
    }
  }

  void lanes(Value *From, Value *To, Type *T, Value *Mask) {
    Type *Lane = cast<VectorType>(T)->getElementType();
    Visit({&I, MemoryAccess::Lanes, From, To, bytesOf(Lane), T, Mask});
  }

  /// The place that is written goes along with the last that is read.
  void visitLibraryCall(CallBase &Call, const LibraryCall &Shape) {
    auto Argument = [&](int A) {
      return A < 0 ? nullptr : Call.getArgOperand(A);
    };
    auto Kind =
        Shape.ReadsStrings ? MemoryAccess::Strings : MemoryAccess::Bytes;
    Value *Length = Argument(Shape.Length);
    Value *To = Argument(Shape.Writes);
    int First = Shape.Reads[0], Second = Shape.Reads[1];
    if (Second >= 0) {
      Visit({&I, Kind, Argument(First), nullptr, Length});
      First = Second;
    }
    Visit({&I, Kind, Argument(First), To, Length});
  }
};

} // namespace

void forEachAccess(Instruction &I, const TargetLibraryInfo &Library,
                   function_ref<void(const MemoryAccess &)> Visit) {
  Walk(I, Library, Visit).run();
}

AccessBuilder::AccessBuilder(Instruction &Point, const Instruction &Access)
    : InstrumentationIRBuilder(&Point) {
  SetCurrentDebugLocation(Access.getDebugLoc());
  ensureDebugInfo(*this, *Point.getFunction());
}

Instruction *AccessBuilder::enterIf(Value *Condition, Instruction &Point) {
  DebugLoc Location = getCurrentDebugLocation();
  Instruction *End = SplitBlockAndInsertIfThen(
      Condition, &Point, /*Unreachable=*/false,
      MDBuilder(getContext()).createUnlikelyBranchWeights());
  SetInsertPoint(End);
  SetCurrentDebugLocation(Location);
  return End;
}

bool isRewritable(const Function &F) {
  return !F.isDeclaration() && !F.hasAvailableExternallyLinkage() &&
         !F.hasFnAttribute(Attribute::Naked) &&
         !F.getName().starts_with("hf_trace_");
}

void keepAllocasInEntry(Function &F) {
  BasicBlock &Entry = F.getEntryBlock();
  PrepareToSplitEntryBlock(Entry, Entry.getFirstNonPHIOrDbgOrAlloca());
}

} // namespace holdfast
