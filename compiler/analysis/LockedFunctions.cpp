// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/LockedFunctions.h"
#include "analysis/Calls.h"
#include "analysis/Names.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace holdfast {

namespace {

class Finder {
public:
  bool takesLock(const Function &F) {
    auto [Known, IsNew] = Takes.try_emplace(&F, false);
    if (!IsNew)
      return Known->second; // recursion adds nothing
    bool Found = false;
    for (const Instruction &I : instructions(F))
      if (const auto *Call = dyn_cast<CallBase>(&I))
        if (const Function *Callee = calledFunction(*Call))
          Found |=
              isLock(*Callee) || (isOfLibrary(*Callee) && takesLock(*Callee));
    return Takes[&F] = Found;
  }

  static bool isOfLibrary(const Function &F) {
    StringRef Name = F.getName();
    return Name.starts_with("_ZNSt") || Name.starts_with("_ZNKSt") ||
           Name.starts_with("_ZSt");
  }

private:
  DenseMap<const Function *, bool> Takes;

  static bool isLock(const Function &F) {
    StringRef Name = F.getName();
    return Name.consume_front("_ZN2hf12shared_mutex") &&
           Name.contains("lock") && !Name.contains("unlock");
  }
};

} // namespace

SmallVector<Function *, 8> findLockedFunctions(Module &M) {
  Finder Find;
  SmallVector<Function *, 8> Found;
  for (Function &F : M)
    if (!F.isDeclaration() && !isTxfunc(F) && !Finder::isOfLibrary(F) &&
        Find.takesLock(F))
      Found.push_back(&F);
  return Found;
}

} // namespace holdfast
