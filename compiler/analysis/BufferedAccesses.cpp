// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What goes through the buffer:
//
// 1. Every write that may reach PM, except those to fresh memory. No pointer
//    leads there before the commit, so the section writes it in place.
// 2. Every read that may be of PM and may come after a write of (1), except
//    those of fresh memory. In a section's own function, control flow decides
//    what comes after a write, and a call of a function that writes is a write.
//    In a helper every read comes after a write.
//
// Any other read sees the memory itself. It holds what the section found there,
// because no write of (1) changes it before the commit.
#include "analysis/BufferedAccesses.h"
#include "analysis/BufferedCalls.h"
#include "analysis/Calls.h"

#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

/// Instances that may buffer a store.
using Storers = SmallPtrSet<const Function *, 16>;

static bool isBuffered(const Write &W) {
  return W.From != Origin::Fresh && mayBePM(W.Address);
}

/// Whether a function of the library, or an intrinsic, may meet PM through this
/// argument, and not in fresh memory.
static bool meetsPM(const CallBase &Call, unsigned Argument,
                    const FreshFunctions &Fresh, const Place &Where) {
  const Value *Address = Call.getArgOperand(Argument);
  if (!Address->getType()->isPtrOrPtrVectorTy() || !mayBePM(Address))
    return false;
  return Address->getType()->isVectorTy() ||
         originOfAccess(Address, 0, Where, Fresh).From == Origin::Unknown;
}

static void insertUses(const Instruction &I, const Value *Address,
                       AddressUses &Uses) {
  for (const Use &U : I.operands())
    if (U.get() == Address)
      Uses.insert(&U);
}

/// Sorts the accesses of 'F', whatever their order.
static BufferedAccesses accessesOf(Function &F, const FreshFunctions &Fresh) {
  BufferedAccesses Found;
  DominatorTree Tree(F);
  LoopInfo Loops(Tree);
  Accesses All = collectAccesses(F, Fresh, Tree, Loops);
  for (const Write &W : All.Writes) {
    if (W.From == Origin::Fresh)
      Found.Notes.push_back({W, /*Log=*/false});
    else if (isBuffered(W))
      insertUses(*W.At, W.Address, Found.Writes);
  }
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (int Text = Call ? thrownText(*Call) : -1;
        Text >= 0 && meetsPM(*Call, Text, Fresh, {&I, &Tree, &Loops}))
      Found.Reads.insert(&Call->getArgOperandUse(Text));
    const BufferedCall *Shape = Call ? findBufferedCall(*Call) : nullptr;
    if (!Shape)
      continue;
    for (const ArgumentExtent &Extent : Shape->Extents) {
      if (Extent.What == ArgumentExtent::None ||
          !meetsPM(*Call, Extent.Argument, Fresh, {&I, &Tree, &Loops}))
        continue;
      bool Writes = Extent.What == ArgumentExtent::Result ||
                    Extent.What == ArgumentExtent::End;
      if (Writes || Extent.What == ArgumentExtent::Append)
        Found.Writes.insert(&Call->getArgOperandUse(Extent.Argument));
      if (!Writes)
        Found.Reads.insert(&Call->getArgOperandUse(Extent.Argument));
    }
  }
  for (const Read &R : All.Reads)
    if (R.Address && mayBePM(R.Address))
      insertUses(*R.At, R.Address, Found.Reads);
  return Found;
}

/// Whether the call runs an instance that may store: directly, by a function
/// of the library that calls it back, or nobody knows which.
static bool callsStorer(const CallBase &Call, const Storers &Known) {
  if (is_contained({CallKind::Indirect, CallKind::Elsewhere},
                   classifyCall(Call).Kind))
    return true;
  if (Known.contains(calledFunction(Call)))
    return true;
  int Back = calledBack(Call);
  return Back >= 0 &&
         Known.contains(dyn_cast<Function>(
             Call.getArgOperand(unsigned(Back))->stripPointerCasts()));
}

static Storers findStorers(const Sections &All,
                           ArrayRef<BufferedAccesses> Found) {
  Storers Known;
  for (auto [F, Its] : zip(All.Functions, Found))
    if (!Its.Writes.empty())
      Known.insert(F->Instance);
  for (bool Grew = true; Grew;) {
    Grew = false;
    for (const auto &F : All.Functions)
      for (const Instruction &I : instructions(*F->Instance))
        if (const auto *Call = dyn_cast<CallBase>(&I))
          if (callsStorer(*Call, Known))
            Grew |= Known.insert(F->Instance).second;
  }
  return Known;
}

/// Removes the reads of 'F', a section's own function, that no store comes
/// before.
static void dropReadsBeforeStores(const Function &F, const Storers &Known,
                                  BufferedAccesses &Found) {
  SmallPtrSet<const Instruction *, 16> Stores;
  for (const Use *Written : Found.Writes)
    Stores.insert(cast<Instruction>(Written->getUser()));
  for (const Instruction &I : instructions(F))
    if (const auto *Call = dyn_cast<CallBase>(&I))
      if (callsStorer(*Call, Known))
        Stores.insert(Call);

  SmallPtrSet<const BasicBlock *, 32> After; // entered behind a store
  SmallVector<const BasicBlock *, 32> Left;
  for (const Instruction *Store : Stores)
    append_range(Left, successors(Store->getParent()));
  while (!Left.empty()) {
    const BasicBlock *Block = Left.pop_back_val();
    if (After.insert(Block).second)
      append_range(Left, successors(Block));
  }

  SmallPtrSet<const Instruction *, 16> Late;
  for (const BasicBlock &Block : F) {
    bool Stored = After.contains(&Block);
    for (const Instruction &I : Block) {
      if (Stored)
        Late.insert(&I);
      Stored |= Stores.contains(&I);
    }
  }
  AddressUses Kept;
  for (const Use *Read : Found.Reads)
    if (Late.contains(cast<Instruction>(Read->getUser())))
      Kept.insert(Read);
  Found.Reads = std::move(Kept);
}

std::vector<BufferedAccesses>
findBufferedAccesses(const Sections &All, const FreshFunctions &Fresh) {
  std::vector<BufferedAccesses> Found;
  for (const auto &F : All.Functions)
    Found.push_back(accessesOf(*F->Instance, Fresh));
  Storers Known = findStorers(All, Found);
  for (auto [F, Its] : zip(All.Functions, Found))
    if (F->As == Role::Entry)
      dropReadsBeforeStores(*F->Instance, Known, Its);
  return Found;
}

static std::string nameOf(const CallBase &Call) {
  return libraryNameOf(calledFunction(Call)->getName());
}

void findUnbufferable(const Sections &All, const FreshFunctions &Fresh,
                      SectionReport Report) {
  std::vector<BufferedAccesses> Found = findBufferedAccesses(All, Fresh);
  for (auto [F, Its] : zip(All.Functions, Found)) {
    DominatorTree Tree(*F->Instance);
    LoopInfo Loops(Tree);
    for (const Instruction &I : instructions(*F->Instance)) {
      const auto *Call = dyn_cast<CallBase>(&I);
      CallKind Kind = Call ? classifyCall(*Call).Kind : CallKind::NoAccess;
      if (Kind != CallKind::Logs && Kind != CallKind::Reads &&
          !(Kind == CallKind::Unrepeatable && isVarying(*Call)))
        continue;
      if (Kind == CallKind::Reads && readsAnywhere(*Call)) {
        Report(
            *F,
            "call of '" + nameOf(*Call) +
                "', which may read any memory: the section keeps its stores "
                "elsewhere until its end; load what the call reads one by one, "
                "or call it before the section",
            I.getDebugLoc());
        continue;
      }
      const BufferedCall *Shape = findBufferedCall(*Call);
      for (unsigned A = 0; A != Call->arg_size(); ++A) {
        if (Shape && Shape->extentOf(A))
          continue;
        bool IsRead = Kind == CallKind::Reads &&
                      Call->getArgOperand(A)->getType()->isPointerTy();
        bool Meets = IsRead ? Its.Reads.contains(&Call->getArgOperandUse(A))
                            : meetsPM(*Call, A, Fresh, {&I, &Tree, &Loops});
        if (!Meets)
          continue;
        Report(*F,
               "call of '" + nameOf(*Call) +
                   "' with the address of memory that may be persistent: the "
                   "compiler does not see how much the call reads or writes, "
                   "and the section keeps its stores elsewhere until its end; "
                   "call it on a copy in a local variable",
               I.getDebugLoc());
        break;
      }
    }
  }
}

} // namespace holdfast
