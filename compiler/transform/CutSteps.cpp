// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Between two steps a section may run again from the first of them. So it writes
// there only what nothing has read since that step:
//
// 1. Every write that may reach the pool is a step. Every allocation, free, lock
//    and unlock is one, too. A step holds its operands: nothing is read again.
// 2. Some writes fit into no step: a vector, words that may lie in two lines, a
//    copy of a constant (which lies elsewhere in the next process). Such a write
//    gets a point before it, and is made right behind the point, from the frame. A
//    copy from a kept address has a step and a point: it may read the pool or a
//    constant.
// 3. Locals that stay in memory lie in the frame. A write to one is a step only
//    if a read of it may come before, without a step between them. A copy out of a
//    local counts as a read behind its step as well, where recovery makes it again.
// 4. The section begins where all paths to steps are still one, and ends on every
//    path from there. Reads before that are outside of it, and what it preserves
//    has been read by then. A function without a mark has its sections where it
//    holds locks: its first lock begins one, its last unlock ends it. Outside of
//    them the runtime does what a step says and logs nothing.
//    With regions (iDO's), a write to the pool is one of 3: made in place, and a
//    step only if it may change what the section has read since its last step. The
//    code between two steps can run again, because it reads what it read before.
// 5. What another thread may change at any time is asked once: a point stands
//    behind an atomic load and behind the answer whether a lock was free. Else the
//    code behind it could take another path in its second run, after the first run
//    has written to the frame.
// 6. A function that keeps its frame is called behind a point. While it runs, its
//    caller resumes at that point and calls it again. The call counts as a read of
//    all that the callee may read, and the callee's last step precedes what follows
//    the call. The callee has no section of its own: all of it is inside.
#include "transform/CutSteps.h"
#include "analysis/Accesses.h"
#include "analysis/Calls.h"
#include "transform/ConstantAddresses.h"
#include "transform/FrameLocals.h"

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumSteps, "Steps of sections that resume");
STATISTIC(NumPlain, "Writes of such sections between steps");

namespace holdfast {

static unsigned resultOf(const CallBase &Call) {
  return Call.paramHasAttr(0, Attribute::StructRet) ? 0 : 1;
}

Value *writtenAddress(Instruction &I) {
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return Store->getPointerOperand();
  if (auto *Memory = dyn_cast<MemIntrinsic>(&I))
    return Memory->getRawDest();
  auto *Call = dyn_cast<CallBase>(&I);
  return Call && Call->hasStructRetAttr() ? Call->getArgOperand(resultOf(*Call))
                                          : nullptr;
}

Value *writtenBytes(Instruction &I) {
  if (auto *Call = dyn_cast<CallBase>(&I); Call && !isa<MemIntrinsic>(I))
    return ConstantInt::get(Type::getInt64Ty(I.getContext()),
                            I.getDataLayout().getTypeStoreSize(
                                Call->getParamStructRetType(resultOf(*Call))));
  if (auto *Store = dyn_cast<StoreInst>(&I))
    return ConstantInt::get(Type::getInt64Ty(I.getContext()),
                            I.getDataLayout().getTypeStoreSize(
                                Store->getValueOperand()->getType()));
  return cast<MemIntrinsic>(I).getLength();
}

namespace {

class Cutter {
public:
  Cutter(Function &F, Role As, const SectionOptions &Options,
         TargetLibraryInfo &Library,
         function_ref<void(const Twine &, const DebugLoc &)> Report)
      : F(F), IsCalled(As == Role::Helper), BetweenLocks(Options.BetweenLocks),
        Regions(Options.Engine->Logs == LoggedWrites::regions), Report(Report),
        Tree(F), Loops(Tree), Assumptions(F),
        Basic(F.getDataLayout(), F, Library, Assumptions), Aliases(Library),
        Batch(queries()) {
    Batch.enableCrossIterationMode();
  }

  Steps run() {
    SmallVector<Instruction *, 32> Certain, InPool, Plain;
    for (BasicBlock *Block : ReversePostOrderTraversal<Function *>(&F))
      for (Instruction &I : *Block)
        if (!isStep(I)) {
          if (writesFrame(I))
            Plain.push_back(&I);
        } else if (Regions && isPlainWrite(I)) {
          InPool.push_back(&I);
          Plain.push_back(&I);
        } else {
          Certain.push_back(&I);
        }
    for (Instruction *I : Certain)
      cut(*I);
    if (Regions && !IsCalled && !BetweenLocks &&
        !(Found.All.empty() && InPool.empty()))
      notePlainOutside(Plain, *enclose(InPool));
    for (Instruction *I : Plain)
      if (readsBefore(*I)) {
        cut(*I);
      } else {
        ++NumPlain;
        Found.Noted.push_back(I);
      }
    if (IsCalled) {
      checkNothingPreserved();
      if (Found.All.empty() && !InPool.empty())
        cutPoint(*InPool.front()); // else it had no frame, and no notes
    } else if (Found.All.empty() ||
               (BetweenLocks && InPool.empty() && onlyLocks()))
      Found = Steps();
    else if (BetweenLocks)
      checkPreservedOutside();
    else if (!Regions)
      enclose({});
    erasePreserveMarks();
    NumSteps += Found.All.size();
    return std::move(Found);
  }

private:
  Function &F;
  const bool IsCalled;     // by sections: (6)
  const bool BetweenLocks; // without a mark: (4)
  const bool Regions;
  function_ref<void(const Twine &, const DebugLoc &)> Report;
  DominatorTree Tree;
  LoopInfo Loops;
  AssumptionCache Assumptions;
  BasicAAResult Basic;
  AAResults Aliases;
  BatchAAResults Batch;
  const FreshFunctions Fresh; // everything is one function
  Steps Found;

  AAResults &queries() {
    Aliases.addAAResult(Basic);
    return Aliases;
  }

  // --- What is a step --------------------------------------------------------

  Met met(Instruction &I, Value *Address) const {
    auto *Bytes = dyn_cast<ConstantInt>(writtenBytes(I));
    return originOfAccess(Address, Bytes ? Bytes->getZExtValue() : 0,
                          {&I, &Tree, &Loops}, Fresh);
  }

  bool writesFrame(Instruction &I) const {
    Value *Address = writtenAddress(I);
    return Address && met(I, Address).From == Origin::Local &&
           !isa<GlobalVariable>(getUnderlyingObject(Address));
  }

  /// Whether the write is one instruction that other threads need not see at once.
  static bool isPlainWrite(const Instruction &I) {
    return isa<MemIntrinsic>(I) || (isa<StoreInst>(I) && !I.isAtomic());
  }

  /// Writes before the section are not part of it.
  void notePlainOutside(SmallVectorImpl<Instruction *> &Plain,
                        const BasicBlock &Inside) {
    Tree.recalculate(F);
    erase_if(Plain, [&](Instruction *I) {
      if (Tree.dominates(&Inside, I->getParent()))
        return false;
      Found.Noted.push_back(I);
      return true;
    });
  }

  /// (5)
  static bool isAsked(const Instruction &I) {
    const auto *Load = dyn_cast<LoadInst>(&I);
    return Load && Load->isAtomic();
  }

  /// (1)
  bool isStep(Instruction &I) const {
    if (isAsked(I))
      return true;
    auto *Call = dyn_cast<CallBase>(&I);
    if (Call && callStep(*Call) == Step::Call)
      return true;
    if (Value *Address = writtenAddress(I))
      return !isOfResult(Address) && met(I, Address).From != Origin::Local &&
             mayBePM(Address);
    return Call && callStep(*Call) != Step::Point;
  }

  /// Returns the kind of step that a call is, or Point for other calls.
  static Step::Kind callStep(const CallBase &Call) {
    const Function *Callee = calledFunction(Call);
    switch (classifyCall(Call).Kind) {
    case CallKind::Body:
      return Step::Call;
    case CallKind::Alloc:
      return Step::Alloc;
    case CallKind::Locks:
      return Callee->getName().contains("unlock") ? Step::Unlock
             : Callee->getName().contains("try_") ? Step::TryLock
                                                  : Step::Lock;
    default:
      return Callee && Callee->getName() == "hf_free" ? Step::Free
                                                      : Step::Point;
    }
  }

  /// Whether a step can store it.
  static bool fits(const StoreInst &Store) {
    Type *T = Store.getValueOperand()->getType();
    uint64_t Bytes = Store.getDataLayout().getTypeStoreSize(T);
    return T->isSingleValueType() && !T->isVectorTy() && isPowerOf2_64(Bytes) &&
           Bytes <= 8 && Store.getAlign().value() >= Bytes;
  }

  /// Whether it copies within the pool, the frame included.
  bool copiesWithinPool(const MemTransferInst &Copy) const {
    const Value *From = Copy.getRawSource();
    return mayBePM(From) ||
           originOf(From, Fresh, /*Loops=*/nullptr) == Origin::Local;
  }

  // --- Cutting ---------------------------------------------------------------

  void add(Step::Kind What, Instruction *At, BasicBlock *Before,
           BasicBlock *Behind) {
    Found.All.push_back({What, At, Before, Behind});
    Found.Behind.insert(Behind);
  }

  /// Splits the block before 'At': what it ended with, the rest ends with now.
  BasicBlock *split(Instruction &At) {
    BasicBlock *Block = At.getParent();
    BasicBlock *Rest = Block->splitBasicBlock(&At);
    for (Step &S : Found.All)
      if (S.Before == Block)
        S.Before = Rest;
    return Rest;
  }

  void cutBehind(Step::Kind What, Instruction &I) {
    BasicBlock *Behind = split(*I.getNextNode());
    add(What, &I, I.getParent(), Behind);
  }

  void cutPoint(Instruction &I) {
    BasicBlock *Before = I.getParent(), *Behind = split(I);
    add(Step::Point, nullptr, Before, Behind);
  }

  /// (2)
  void cutBefore(Instruction &I) {
    cutPoint(I);
    Found.Noted.push_back(&I);
  }

  /// (6)
  void cutCall(Instruction &I) {
    BasicBlock *Before = I.getParent(), *Behind = split(I);
    add(Step::Call, nullptr, Before, Behind);
    if (writtenAddress(I)) // its result
      Found.Noted.push_back(&I);
  }

  /// (5) Where the lock is held, and where it is not, are two places.
  void cutTry(Instruction &I) {
    LLVMContext &Context = F.getContext();
    BasicBlock *Rest = split(*I.getNextNode()), *Asks = I.getParent();
    BasicBlock *Held = BasicBlock::Create(Context, "held", &F, Rest);
    BasicBlock *NotHeld = BasicBlock::Create(Context, "not_held", &F, Rest);
    BasicBlock *Knows = BasicBlock::Create(Context, "knows", &F, Rest);
    for (auto [From, To] : {std::pair{Held, Rest}, std::pair{NotHeld, Knows},
                            std::pair{Knows, Rest}})
      BranchInst::Create(To, From)->setDebugLoc(I.getDebugLoc());
    PHINode *Answer = PHINode::Create(I.getType(), 2, "", Rest->begin());
    I.replaceAllUsesWith(Answer);
    Answer->addIncoming(ConstantInt::get(I.getType(), 1), Held);
    Answer->addIncoming(ConstantInt::get(I.getType(), 0), Knows);
    Asks->getTerminator()->eraseFromParent();
    BranchInst::Create(Held, NotHeld, &I, Asks)->setDebugLoc(I.getDebugLoc());
    add(Step::TryLock, &I, Asks, Held);
    add(Step::Point, nullptr, NotHeld, Knows);
  }

  void cut(Instruction &I) {
    if (isAsked(I)) {
      BasicBlock *Behind = split(*I.getNextNode());
      return add(Step::Point, nullptr, I.getParent(), Behind);
    }
    if (auto *Store = dyn_cast<StoreInst>(&I))
      return fits(*Store) ? cutBehind(Step::Store, I) : cutBefore(I);
    if (auto *Copy = dyn_cast<MemTransferInst>(&I)) {
      if (!copiesWithinPool(*Copy))
        return cutBefore(I);
      if (mayBeKept(*Copy->getRawSource(), !IsCalled))
        cutPoint(I); // hf_justdo_copy takes it from there
      return cutBehind(Step::Copy, I);
    }
    if (isa<MemSetInst>(&I))
      return cutBehind(Step::Fill, I);
    Step::Kind What = callStep(cast<CallBase>(I));
    if (What == Step::Call)
      return cutCall(I);
    if (writtenAddress(I))
      return cutBefore(I); // a call that returns its result in memory
    What == Step::TryLock ? cutTry(I) : cutBehind(What, I);
  }

  // --- Writes to the frame ---------------------------------------------------

  /// The blocks from whose end control may come to 'To' without a step.
  SmallPtrSet<const BasicBlock *, 16> blocksBefore(const BasicBlock *To) const {
    SmallPtrSet<const BasicBlock *, 16> Seen;
    SmallVector<const BasicBlock *, 16> Left{To};
    while (!Left.empty()) {
      const BasicBlock *Block = Left.pop_back_val();
      if (!Found.isFree(Block))
        continue;
      for (const BasicBlock *From : predecessors(Block))
        if (Seen.insert(From).second)
          Left.push_back(From);
    }
    return Seen;
  }

  bool mayRead(Instruction &I, const MemoryLocation &Where) {
    if (!I.mayReadFromMemory() || isa<LifetimeIntrinsic>(I))
      return false;
    if (const Value *Address = getLoadStorePointerOperand(&I);
        Address && (mayBeNumber(Address) ||
                    (originOf(Address, Fresh, nullptr) != Origin::Unknown &&
                     mayStray(Address, 0))))
      return true; // it leads elsewhere than its object
    return isRefSet(Batch.getModRefInfo(&I, Where));
  }

  static MemoryLocation locationOf(Instruction &I) {
    Value *Address = writtenAddress(I);
    const auto *Bytes = dyn_cast<ConstantInt>(writtenBytes(I));
    return Bytes && !Bytes->isZero()
               ? MemoryLocation(Address,
                                LocationSize::precise(Bytes->getZExtValue()))
               : MemoryLocation::getBeforeOrAfter(Address);
  }

  /// (3)
  bool readsBefore(Instruction &Write) {
    MemoryLocation Where = locationOf(Write);
    if (auto *Move = dyn_cast<MemMoveInst>(&Write);
        Move && mayRead(*Move, Where))
      return true;
    BasicBlock *In = Write.getParent();
    SmallPtrSet<const BasicBlock *, 16> Before = blocksBefore(In);
    for (Instruction &I : make_range(In->begin(), Write.getIterator()))
      if (mayRead(I, Where))
        return true;
    for (BasicBlock &Block : F)
      if (Before.contains(&Block))
        for (Instruction &I : Block)
          if (&I != &Write && mayRead(I, Where))
            return true;
    return any_of(Found.All, [&](const Step &S) {
      return S.What == Step::Copy &&
             (S.Behind == In || Before.contains(S.Behind)) &&
             mayRead(*S.At, Where);
    });
  }

  // --- The section's ends ----------------------------------------------------

  /// It has nothing to resume.
  bool onlyLocks() const {
    return all_of(Found.All, [](const Step &S) {
      return S.What == Step::Lock || S.What == Step::TryLock ||
             S.What == Step::Unlock || S.What == Step::Point;
    });
  }

  void checkNothingPreserved() {
    for (CallInst *Mark : preserveMarks())
      Report("hf_vlog_preserve in a function that recurses: preserve before it "
             "is called",
             Mark->getDebugLoc());
  }

  /// Volatile memory is read before the first lock.
  void checkPreservedOutside() {
    SmallPtrSet<const BasicBlock *, 32> Seen;
    SmallVector<const BasicBlock *, 32> Left;
    for (const Step &S : Found.All)
      if (S.What == Step::Lock || S.What == Step::TryLock)
        Left.push_back(S.Behind);
    while (!Left.empty())
      if (const BasicBlock *Block = Left.pop_back_val();
          Seen.insert(Block).second)
        append_range(Left, successors(Block));
    for (CallInst *Mark : preserveMarks())
      if (Seen.contains(Mark->getParent()))
        Report("hf_vlog_preserve where a lock may have been taken: preserve "
               "before the first one",
               Mark->getDebugLoc());
  }

  static bool isInCycle(const BasicBlock *Block) {
    SmallPtrSet<const BasicBlock *, 32> Seen;
    SmallVector<const BasicBlock *, 32> Left{Block};
    while (!Left.empty())
      for (const BasicBlock *Next : successors(Left.pop_back_val()))
        if (Seen.insert(Next).second)
          Left.push_back(Next);
    return Seen.contains(Block);
  }

  /// (4) Returns the section's first block. It holds the writes 'InPool', too.
  BasicBlock *enclose(ArrayRef<Instruction *> InPool) {
    Tree.recalculate(F);
    BasicBlock *Fork = Found.All.empty() ? InPool.front()->getParent()
                                         : Found.All.front().Before;
    for (const Step &S : Found.All)
      Fork = Tree.findNearestCommonDominator(Fork, S.Before);
    for (Instruction *I : InPool)
      Fork = Tree.findNearestCommonDominator(Fork, I->getParent());
    while (isInCycle(Fork))
      Fork = Tree.getNode(Fork)->getIDom()->getBlock();
    Instruction *First = Fork->getTerminator();
    for (const Step &S : Found.All)
      if (S.Before == Fork && S.At)
        First = S.At;
    for (Instruction *I : InPool)
      if (I->getParent() == Fork && I->comesBefore(First))
        First = I;
    // Code that was inserted for the paths of a loop's header stays before it.
    BasicBlock *Inside = split(*First);
    Tree.recalculate(F);
    checkPreserved(*Inside);
    end(*Inside);
    add(Step::Begin, nullptr, Fork, Inside);
    return Inside;
  }

  void end(BasicBlock &Inside) {
    SmallVector<std::pair<BasicBlock *, BasicBlock *>, 8> Out;
    SmallVector<ReturnInst *, 4> Returns;
    for (BasicBlock &Block : F) {
      if (!Tree.dominates(&Inside, &Block))
        continue;
      if (auto *Return = dyn_cast<ReturnInst>(Block.getTerminator()))
        Returns.push_back(Return);
      for (BasicBlock *Next : successors(&Block))
        if (!Tree.dominates(&Inside, Next) &&
            !is_contained(Out, std::pair(&Block, Next)))
          Out.emplace_back(&Block, Next);
    }
    for (ReturnInst *Return : Returns) {
      BasicBlock *Before = Return->getParent();
      BasicBlock *Behind = split(*Return);
      add(Step::End, nullptr, Before, Behind);
    }
    for (auto [From, To] : Out) {
      BasicBlock *Before = SplitBlockPredecessors(To, {From}, ".end");
      BasicBlock *Behind = split(*Before->getTerminator());
      add(Step::End, nullptr, Before, Behind);
    }
  }

  /// Volatile memory is read before the section begins.
  void checkPreserved(BasicBlock &Inside) {
    for (CallInst *Mark : preserveMarks())
      if (Tree.dominates(&Inside, Mark->getParent()) ||
          isInCycle(Mark->getParent()))
        Report("hf_vlog_preserve in a loop, or where the section has begun: it "
               "begins where every path to a store still is one",
               Mark->getDebugLoc());
  }

  SmallVector<CallInst *, 4> preserveMarks() const {
    SmallVector<CallInst *, 4> Marks;
    for (Instruction &I : instructions(F))
      if (auto *Call = dyn_cast<CallInst>(&I);
          Call && Call->getCalledFunction() &&
          Call->getCalledFunction()->getName() == PreserveMark)
        Marks.push_back(Call);
    return Marks;
  }

  void erasePreserveMarks() {
    for (CallInst *Mark : preserveMarks())
      Mark->eraseFromParent();
  }
};

} // namespace

Steps cutSteps(Function &F, Role As, const SectionOptions &Options,
               TargetLibraryInfo &Library,
               function_ref<void(const Twine &, const DebugLoc &)> Report) {
  return Cutter(F, As, Options, Library, Report).run();
}

} // namespace holdfast
