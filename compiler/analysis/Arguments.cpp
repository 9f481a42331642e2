// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Arguments.h"
#include "analysis/Calls.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace holdfast {

namespace {

/// Whether a pointer is used for nothing but hf_vlog_preserve's first argument
/// (and comparisons with null). Follows what unoptimised code does with it: a
/// spill to a local, a wrapper.
class PreserveOnly {
public:
  bool holds(const Value &Pointer) {
    if (!Seen.insert(&Pointer).second)
      return true; // a recursive wrapper adds no other use
    return all_of(Pointer.uses(), [&](const Use &U) { return allows(U); });
  }
  bool Preserved = false;

private:
  SmallPtrSet<const Value *, 8> Seen;

  bool allows(const Use &U) {
    const User *By = U.getUser();
    if (isa<DbgInfoIntrinsic>(By))
      return true;
    if (const auto *Compare = dyn_cast<ICmpInst>(By))
      return isa<ConstantPointerNull>(
          Compare->getOperand(1 - U.getOperandNo()));
    if (const auto *Store = dyn_cast<StoreInst>(By)) {
      const auto *Local = dyn_cast<AllocaInst>(Store->getPointerOperand());
      return Local && U.getOperandNo() == 0 && isSpill(*Local);
    }
    if (const auto *Call = dyn_cast<CallBase>(By)) {
      if (!Call->isArgOperand(&U))
        return false;
      unsigned Index = Call->getArgOperandNo(&U);
      switch (classifyCall(*Call).Kind) {
      case CallKind::Preserve:
        Preserved |= Index == 0;
        return Index == 0;
      case CallKind::Body:
        return Index < calledFunction(*Call)->arg_size() &&
               holds(*calledFunction(*Call)->getArg(Index));
      default:
        return false;
      }
    }
    return false;
  }

  bool isSpill(const AllocaInst &Local) {
    unsigned Stores = 0;
    for (const User *By : Local.users()) {
      if (isa<StoreInst>(By))
        ++Stores; // as the value stored it would be an escape, counted below as
                  // a second store
      else if (const auto *Load = dyn_cast<LoadInst>(By)) {
        if (!holds(*Load))
          return false;
      } else if (!isa<LifetimeIntrinsic>(By) && !isa<DbgInfoIntrinsic>(By)) {
        return false;
      }
    }
    return Stores == 1;
  }
};

/// Follows the address of an aggregate, or its words as they are passed in
/// registers, to its pointers: through constant offsets, copies to locals, and calls of visible functions that take
/// its address ('this' of a closure, in unoptimised code).
///
/// "Always" is what post-dominates the entry: a disengaged optional holds any
/// bits, and the section may begin with them.
class FieldFinder {
public:
  SmallVector<PointerField, 4> Found;

  void walk(const Value &Address, int64_t Offset, bool Always) {
    if (!Seen.insert({&Address, Offset}).second)
      return;
    for (const Use &U : Address.uses())
      visit(U, Offset, Always);
  }

  /// 'Words': what lies at 'Offset' of the aggregate, or all of it.
  void walkWords(const Value &Words, int64_t Offset) {
    for (const User *By : Words.users()) {
      if (const auto *Part = dyn_cast<ExtractValueInst>(By))
        walkWords(*Part, Offset + Part->getIndices()[0] * sizeof(uint64_t));
      else if (const auto *Pointer = dyn_cast<IntToPtrInst>(By)) {
        note(*Pointer, uint64_t(Offset), true);
        walkWords(*Pointer, Offset); // unoptimised code spills it
      } else if (const auto *Store = dyn_cast<StoreInst>(By))
        if (const auto *Local = dyn_cast<AllocaInst>(
                Store->getPointerOperand()->stripPointerCasts()))
          walk(*Local, Offset, true);
    }
  }

private:
  DenseSet<std::pair<const Value *, int64_t>> Seen;
  DenseMap<const Function *, std::unique_ptr<PostDominatorTree>> Trees;

  bool alwaysRuns(const Instruction &I) {
    auto &F = const_cast<Function &>(*I.getFunction());
    auto &Tree = Trees[&F];
    if (!Tree)
      Tree = std::make_unique<PostDominatorTree>(F);
    return Tree->dominates(I.getParent(), &F.getEntryBlock());
  }

  void visit(const Use &U, int64_t Offset, bool Always) {
    const auto *By = dyn_cast<Instruction>(U.getUser());
    if (!By)
      return;
    if (const auto *Gep = dyn_cast<GetElementPtrInst>(By)) {
      const DataLayout &Layout = By->getFunction()->getDataLayout();
      APInt Step(Layout.getIndexTypeSizeInBits(Gep->getType()), 0);
      if (Gep->accumulateConstantOffset(Layout, Step))
        walk(*Gep, Offset + Step.getSExtValue(), Always);
    } else if (const auto *Load = dyn_cast<LoadInst>(By)) {
      if (Load->getType()->isPointerTy() && Offset >= 0)
        note(*Load, uint64_t(Offset), Always);
    } else if (const auto *Store = dyn_cast<StoreInst>(By)) {
      if (U.getOperandNo() == 0)
        walkSpill(Store->getPointerOperand(), Offset, Always);
    } else if (const auto *Copy = dyn_cast<MemTransferInst>(By)) {
      if (&U == &Copy->getRawSourceUse())
        if (const auto *Local = dyn_cast<AllocaInst>(Copy->getRawDest()))
          walk(*Local, Offset, Always);
    } else if (const auto *Call = dyn_cast<CallBase>(By)) {
      if (const Argument *Parameter = parameterFor(*Call, U))
        walk(*Parameter, Offset, Always && alwaysRuns(*Call));
    }
  }

  /// Returns the callee's parameter that a use as an argument becomes; null if
  /// the callee is not seen.
  static const Argument *parameterFor(const CallBase &Call, const Use &U) {
    if (!Call.isArgOperand(&U) || classifyCall(Call).Kind != CallKind::Body)
      return nullptr;
    unsigned Index = Call.getArgOperandNo(&U);
    const Function *Callee = calledFunction(Call);
    return Index < Callee->arg_size() ? Callee->getArg(Index) : nullptr;
  }

  void walkSpill(const Value *Slot, int64_t Offset, bool Always) {
    if (!isa<AllocaInst>(Slot))
      return;
    for (const User *By : Slot->users())
      if (const auto *Load = dyn_cast<LoadInst>(By))
        walk(*Load, Offset, Always);
  }

  void note(const Instruction &Pointer, uint64_t Offset, bool Always) {
    PreserveOnly Uses;
    bool Followed = !Uses.holds(Pointer);
    SmallPtrSet<const Value *, 8> Visited;
    bool Touched =
        Followed && Always && alwaysRuns(Pointer) && touches(Pointer, Visited);
    for (PointerField &Known : Found)
      if (Known.OffsetBytes == Offset) {
        Known.Followed |= Followed;
        Known.Always |= Touched;
        return;
      }
    Found.push_back({Offset, Followed, Touched});
  }

  /// Whether memory behind the pointer is accessed whenever its function runs.
  bool touches(const Value &Pointer, SmallPtrSetImpl<const Value *> &Visited) {
    return Visited.insert(&Pointer).second &&
           any_of(Pointer.uses(),
                  [&](const Use &U) { return touches(U, Visited); });
  }

  bool touches(const Use &U, SmallPtrSetImpl<const Value *> &Visited) {
    const auto *By = dyn_cast<Instruction>(U.getUser());
    if (!By)
      return false;
    if (isa<GetElementPtrInst>(By))
      return U.getOperandNo() == 0 && touches(*By, Visited);
    if (const auto *Store = dyn_cast<StoreInst>(By)) {
      if (U.getOperandNo() != 0)
        return alwaysRuns(*Store);
      const auto *Slot = dyn_cast<AllocaInst>(Store->getPointerOperand());
      return Slot && any_of(Slot->users(), [&](const User *Reader) {
               return isa<LoadInst>(Reader) && touches(*Reader, Visited);
             });
    }
    if (isa<LoadInst>(By) || isa<MemIntrinsic>(By))
      return alwaysRuns(*By);
    if (const auto *Call = dyn_cast<CallBase>(By))
      if (const Argument *Parameter = parameterFor(*Call, U))
        return alwaysRuns(*Call) && touches(*Parameter, Visited);
    return false;
  }
};

} // namespace

SmallVector<PointerField, 4> findPointerFields(const Argument &A) {
  FieldFinder Finder;
  if (A.getType()->isPointerTy())
    Finder.walk(A, 0, true);
  else
    Finder.walkWords(A, 0);
  sort(Finder.Found, [](const PointerField &L, const PointerField &R) {
    return L.OffsetBytes < R.OffsetBytes;
  });
  return std::move(Finder.Found);
}

bool isOnlyPreserved(const Argument &A) {
  PreserveOnly Uses;
  return A.getType()->isPointerTy() && Uses.holds(A) && Uses.Preserved;
}

bool isForArm64(const Function &F) {
  return Triple(F.getParent()->getTargetTriple()).isAArch64();
}

/// Whether the argument may be an aggregate in registers: ARM64 passes one of up to
/// 16 bytes as an array of words, of up to 8 as a word. (x86-64 passes its pointers
/// as pointers.)
static bool isPassedAsWords(const Argument &A) {
  Type *T = A.getType();
  if (const auto *Words = dyn_cast<ArrayType>(T))
    T = Words->getElementType();
  return T->isIntegerTy(64) && (T != A.getType() || isForArm64(*A.getParent()));
}

static hf_arg_kind kindOf(const Argument &A) {
  if (!A.getType()->isPointerTy() || A.hasByValAttr())
    return HF_ARG_VALUE;
  PreserveOnly Uses;
  if (!Uses.holds(A))
    return HF_ARG_POOL_POINTER;
  return Uses.Preserved ? HF_ARG_PRESERVED
                        : HF_ARG_VALUE; // nobody follows an unused pointer
}

ArgumentBlock layOutArguments(Function &F) {
  const DataLayout &Layout = F.getDataLayout();
  ArgumentBlock Block;
  uint64_t End = 0;
  for (const Argument &A : F.args()) {
    if (A.hasStructRetAttr())
      continue;
    Type *T = A.hasByValAttr() ? A.getParamByValType() : A.getType();
    uint64_t Size = Layout.getTypeStoreSize(T);
    uint64_t Offset = alignTo(End, Layout.getABITypeAlign(T));
    Block.HasPadding |= Offset != End;
    Block.Arguments.push_back({A.getArgNo(), T, Offset, Size, kindOf(A), {}});
    if (A.hasByValAttr() || isPassedAsWords(A))
      Block.Arguments.back().Fields = findPointerFields(A);
    End = Offset + Size;
  }
  Block.Bytes = alignTo(End, 8);
  Block.HasPadding |= Block.Bytes != End;
  return Block;
}

} // namespace holdfast
