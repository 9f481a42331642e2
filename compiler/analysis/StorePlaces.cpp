// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/StorePlaces.h"
#include "analysis/Calls.h"
#include "analysis/ConstantTables.h"

#include "llvm/Analysis/ValueTracking.h"

using namespace llvm;

namespace holdfast {

StorePlace StorePlaces::of(const Value *Address, unsigned Depth) {
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Address, Objects, nullptr, /*MaxLookup=*/0);
  std::optional<StorePlace> Common;
  for (const Value *Object : Objects) {
    if (isa<ConstantPointerNull>(Object) || isa<UndefValue>(Object))
      continue;
    auto Seen = Known.find({Object, Depth});
    StorePlace One =
        Seen != Known.end() ? Seen->second : ofObject(Object, Depth);
    Known[{Object, Depth}] = One;
    if (Common && *Common != One)
      return {};
    Common = One;
  }
  return Common.value_or(StorePlace{});
}

StorePlace StorePlaces::ofObject(const Value *Object, unsigned Depth) {
  if (isa<AllocaInst>(Object))
    return {StorePlace::Local};
  if (const auto *A = dyn_cast<Argument>(Object)) {
    if (A->hasByValAttr() ||
        (Current->As == Role::Entry && A->hasStructRetAttr()))
      return {StorePlace::Local};
    if (Current->As == Role::Entry)
      return {StorePlace::Pool};
    return {StorePlace::Parameter, A->getArgNo()};
  }
  if (const auto *Call = dyn_cast<CallBase>(Object))
    return classifyCall(*Call).Kind == CallKind::Alloc ||
                   Fresh.contains(calledFunction(*Call))
               ? StorePlace{StorePlace::Pool}
               : StorePlace{};
  const auto *Load = dyn_cast<LoadInst>(Object);
  if (!Load || Depth == 8)
    return {};
  return ofLoaded(*Load, Depth + 1);
}

StorePlace StorePlaces::ofLoaded(const LoadInst &Load, unsigned Depth) {
  const Value *At = Load.getPointerOperand();
  if (const auto *Slot = dyn_cast<AllocaInst>(At)) {
    SmallVector<const Value *, 2> Stored;
    if (!collectSpilled(*Slot, Stored) || Stored.size() != 1)
      return {};
    return of(Stored.front(), Depth);
  }
  StorePlace Holder = of(At, Depth);
  // A pool holds pointers into itself, and so may an argument passed by value.
  const auto *Closure =
      dyn_cast<Argument>(getUnderlyingObject(At, /*MaxLookup=*/0));
  if (Holder.Is == StorePlace::Pool ||
      (Closure && Closure->hasByValAttr() && Current->As == Role::Entry))
    return {StorePlace::Pool};
  return {};
}

} // namespace holdfast
