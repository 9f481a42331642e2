// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Exceptions.h"
#include "analysis/Calls.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

namespace {

class Looker {
public:
  bool isQuiet(const Function &F) {
    if (F.isDeclaration())
      return isQuietLibrary(F.getName());
    if (F.isInterposable())
      return false;
    if (!Seen.insert(&F).second)
      return true; // is being asked already
    return all_of(instructions(F),
                  [&](const Instruction &I) { return isQuiet(I); });
  }

private:
  SmallPtrSet<const Function *, 8> Seen;

  static bool isQuietLibrary(StringRef Name) {
    if (Name.starts_with("_ZdlPv") || Name.starts_with("_ZdaPv") ||
        Name == "free" || Name == "_ZSt9terminatev" ||
        Name == "__cxa_begin_catch")
      return true;
    return Name.starts_with("_ZNSt") &&
           (Name.ends_with("D0Ev") || Name.ends_with("D1Ev") ||
            Name.ends_with("D2Ev") || Name.ends_with("10_M_disposeEv"));
  }

  /// The object that is destroyed, a part of it, or a local.
  static bool isOwn(const Value *Address) {
    const Value *Object = getUnderlyingObject(Address, /*MaxLookup=*/0);
    if (isa<AllocaInst, Argument>(Object))
      return true;
    const auto *Load = dyn_cast<LoadInst>(Object); // spilled unoptimised
    const auto *Slot =
        Load ? dyn_cast<AllocaInst>(Load->getPointerOperand()) : nullptr;
    return Slot && all_of(Slot->users(), [&](const User *By) {
             if (isa<LoadInst, IntrinsicInst>(By))
               return true;
             const auto *Store = dyn_cast<StoreInst>(By);
             return Store && isa<Argument>(Store->getValueOperand());
           });
  }

  bool isQuiet(const Instruction &I) {
    if (const auto *Store = dyn_cast<StoreInst>(&I))
      return isOwn(Store->getPointerOperand());
    if (isa<AnyMemIntrinsic>(I))
      return isOwn(cast<AnyMemIntrinsic>(I).getRawDest());
    const auto *Call = dyn_cast<CallBase>(&I);
    if (!Call)
      return !I.mayWriteToMemory() || isa<FenceInst, LoadInst>(I);
    if (isa<IntrinsicInst>(Call))
      return true;
    const Function *Callee = calledFunction(*Call);
    // The callee's arguments stand for its own object.
    return Callee && isQuiet(*Callee) &&
           (Callee->isDeclaration() || all_of(Call->args(), [](const Use &U) {
              return !U->getType()->isPointerTy() || isOwn(U.get());
            }));
  }
};

} // namespace

bool destroysOnlyItself(const Function &Destructor) {
  return Looker().isQuiet(Destructor);
}

} // namespace holdfast
