// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Origin.h"
#include "analysis/Calls.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

bool isToolGlobal(const GlobalVariable &Global) {
  StringRef Name = Global.getName();
  return Name.starts_with("__profc_") || Name.starts_with("__profd_") ||
         Name.starts_with("__llvm_gcov") || Name.starts_with("__sancov_") ||
         Name.starts_with("__ubsan_");
}

/// Memory that is no part of any file mapping.
static bool isElsewhere(const Value *Object) {
  if (const auto *Argument = dyn_cast<llvm::Argument>(Object))
    return Argument->hasByValAttr();
  if (const auto *Call = dyn_cast<IntrinsicInst>(Object))
    return Call->getIntrinsicID() == Intrinsic::threadlocal_address;
  return isa<AllocaInst>(Object) || isa<GlobalValue>(Object) ||
         isa<ConstantPointerNull>(Object) || isa<UndefValue>(Object);
}

bool mayBePM(const Value *Address) {
  if (Address->getType()->getScalarType()->getPointerAddressSpace() != 0)
    return false; // the x86 segments fs and gs
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Address, Objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return !all_of(Objects, isElsewhere);
}

static Origin originOfObject(const Value *Object, const FreshFunctions &Fresh) {
  if (isa<AllocaInst>(Object))
    return Origin::Local;
  if (const auto *Argument = dyn_cast<llvm::Argument>(Object))
    return Argument->hasByValAttr() ? Origin::Local : Origin::Unknown;
  if (const auto *Global = dyn_cast<GlobalVariable>(Object)) {
    if (Global->isConstant())
      return Origin::Constant;
    return isToolGlobal(*Global) ? Origin::Local : Origin::Unknown;
  }
  if (isa<Function>(Object))
    return Origin::Constant;
  if (const auto *Call = dyn_cast<CallBase>(Object)) {
    switch (classifyCall(*Call).Kind) {
    case CallKind::Alloc:
      return Origin::Fresh;
    case CallKind::Preserve:
      return Origin::Preserved;
    case CallKind::Body:
      return Fresh.contains(calledFunction(*Call)) ? Origin::Fresh
                                                   : Origin::Unknown;
    default:
      return Origin::Unknown;
    }
  }
  return Origin::Unknown;
}

Origin originOf(const Value *Pointer, const FreshFunctions &Fresh,
                const LoopInfo *Loops) {
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Pointer, Objects, const_cast<LoopInfo *>(Loops),
                       /*MaxLookup=*/0);

  std::optional<Origin> Common;
  for (const Value *Object : Objects) {
    if (isa<ConstantPointerNull>(Object) || isa<UndefValue>(Object))
      continue; // nothing is there to be read or written
    Origin One = originOfObject(Object, Fresh);
    if (!Common || *Common == One) {
      Common = One;
      continue;
    }
    bool OwnMemory = (One == Origin::Fresh || One == Origin::Local) &&
                     (*Common == Origin::Fresh || *Common == Origin::Local);
    if (!OwnMemory)
      return Origin::Unknown;
    Common = Origin::Fresh;
  }
  return Common.value_or(Origin::Unknown);
}

static bool returnsFresh(const Function &F, const FreshFunctions &Fresh) {
  bool Any = false;
  for (const BasicBlock &Block : F) {
    const auto *Return = dyn_cast<ReturnInst>(Block.getTerminator());
    if (!Return)
      continue;
    const Value *Result = Return->getReturnValue();
    if (isa<ConstantPointerNull>(Result))
      continue;
    if (originOf(Result, Fresh, nullptr) != Origin::Fresh)
      return false;
    Any = true;
  }
  return Any;
}

void findFreshFunctions(ArrayRef<Function *> Functions, FreshFunctions &Fresh) {
  // Grows from nothing, so that recursion proves nothing by itself.
  for (bool Grew = true; Grew;) {
    Grew = false;
    for (Function *F : Functions)
      if (F->getReturnType()->isPointerTy() && !Fresh.contains(F) &&
          returnsFresh(*F, Fresh))
        Grew |= Fresh.insert(F).second;
  }
}

} // namespace holdfast
