// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Arguments.h"
#include "analysis/Calls.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"

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

} // namespace

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
    Block.Arguments.push_back({A.getArgNo(), T, Offset, Size, kindOf(A)});
    End = Offset + Size;
  }
  Block.Bytes = alignTo(End, 8);
  Block.HasPadding |= Block.Bytes != End;
  return Block;
}

} // namespace holdfast
