// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions (iDO logging; Clobber §5.4):
//
// 1. A call of another function of the section is a region of its own: cuts
//    before and behind it. A call of the runtime has one before it.
// 2. No region overwrites memory that it has read: a write that may overwrite
//    what a read before it has read, on some path without a cut between them,
//    gets a cut. A read of what the region itself wrote before it in the same
//    block does not count.
// 3. A loop with a cut inside gets one at its header: its variables change from
//    one iteration to the next, and a region must find its registers as they
//    were when it began.
//
// What a cut logs are the registers that were set since the cut before it and
// are read behind it, eight bytes a scalar, and the program counter. Volatile
// bytes that the section preserves are live variables: logged as they are.
//
// Where iDO's paper leaves a choice, we choose in its favour: the section
// computes addresses at constant offsets and casts again rather than log them,
// the program's stack (which iDO keeps in persistent memory) costs nothing, and
// a copy that may overlap itself needs one cut.
#include "analysis/IdempotentRegions.h"
#include "analysis/Calls.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumRegions, "Boundaries of idempotent regions of sections");

namespace holdfast {

namespace {

class Cutter {
public:
  Cutter(Function &F, const FreshFunctions &Fresh, TargetLibraryInfo &Library)
      : F(F), Tree(F), Loops(Tree), Assumptions(F),
        Basic(F.getDataLayout(), F, Library, Assumptions, &Tree),
        Aliases(Library),
        Found(collectAccesses(F, Fresh, Tree, Loops, /*FreshReads=*/true)),
        Batch(queries()) {
    Batch.enableCrossIterationMode();
  }

  Regions run() {
    cutAtCalls();
    Cuts.remove_if([&](Instruction *Before) { return isAtBegin(Before); });
    cutAntidependences();
    for (Instruction *Before : Cuts)
      Result.Cuts.push_back({Before, outputBytes(Before)});
    NumRegions += Cuts.size();
    return std::move(Result);
  }

private:
  Function &F;
  DominatorTree Tree;
  LoopInfo Loops;
  AssumptionCache Assumptions;
  BasicAAResult Basic;
  AAResults Aliases;
  Accesses Found;
  BatchAAResults Batch;
  SetVector<Instruction *> Cuts;
  Regions Result;

  AAResults &queries() {
    Aliases.addAAResult(Basic);
    return Aliases;
  }

  // --- Where to cut ----------------------------------------------------------

  void cut(Instruction *Before) {
    Cuts.insert(Before);
    for (Loop *L = Loops.getLoopFor(Before->getParent()); L;
         L = L->getParentLoop())
      Cuts.insert(&*L->getHeader()->getFirstInsertionPt()); // (3)
  }

  void cutAtCalls() {
    for (Instruction &I : instructions(F)) {
      auto *Call = dyn_cast<CallBase>(&I);
      if (!Call || isa<InvokeInst>(Call))
        continue;
      switch (classifyCall(*Call).Kind) {
      case CallKind::Body:
        cut(&I);
        cut(I.getNextNode());
        break;
      case CallKind::Alloc:
        cut(&I);
        break;
      case CallKind::Preserve:
        Result.Preserves.push_back(Call);
        break;
      case CallKind::NoAccess:
        if (const Function *Callee = calledFunction(*Call))
          if (Callee->getName() == "hf_free" || Callee->getName() == "hf_adopt")
            cut(&I);
        break;
      default:
        break;
      }
    }
  }

  /// Nothing has happened since the function was entered, where a region began.
  static bool isAtBegin(const Instruction *Before) {
    const BasicBlock &Entry = Before->getFunction()->getEntryBlock();
    return Before->getParent() == &Entry &&
           none_of(
               make_range(Entry.begin(), Before->getIterator()),
               [](const Instruction &I) { return I.mayReadOrWriteMemory(); });
  }

  /// Cuts by rule 2, in an order in which a cut is there before what follows it
  /// is asked about.
  void cutAntidependences() {
    DenseMap<const Instruction *, const Write *> WriteAt;
    for (const Write &W : Found.Writes)
      WriteAt[W.At] = &W;
    for (BasicBlock *Block : ReversePostOrderTraversal<Function *>(&F))
      for (Instruction &I : *Block)
        if (const Write *W = WriteAt.lookup(&I))
          if (any_of(Found.Reads,
                     [&](const Read &R) { return isAntidependent(R, *W); }))
            cut(W->At);
  }

  bool isAntidependent(const Read &R, const Write &W) {
    if (!R.Address || isOwnResult(R))
      return false; // a call that may read anything has its own cuts
    return (R.At == W.At || reachesUncut(R.At, W.At)) &&
           aliasOf(Batch, R, W) != AliasResult::NoAlias;
  }

  bool isOwnResult(const Read &R) const {
    return any_of(Found.Writes, [&](const Write &Earlier) {
      return Earlier.At != R.At &&
             Earlier.At->getParent() == R.At->getParent() &&
             Earlier.At->comesBefore(R.At) && Earlier.Where.covers(R.Where) &&
             reachesUncut(Earlier.At, R.At);
    });
  }

  /// Follows control from 'First' on, once through every block; 'Step' says
  /// whether to go on behind an instruction.
  static void walk(const Instruction *First,
                   function_ref<bool(const Instruction &)> Step) {
    SmallPtrSet<const BasicBlock *, 16> Seen;
    SmallVector<const Instruction *, 16> Work = {First};
    while (!Work.empty())
      for (const Instruction *I = Work.pop_back_val(); Step(*I);
           I = I->getNextNode())
        if (I->isTerminator()) {
          for (const BasicBlock *Next : successors(I->getParent()))
            if (Seen.insert(Next).second)
              Work.push_back(&Next->front());
          break;
        }
  }

  bool isCut(const Instruction &I) const {
    return Cuts.contains(const_cast<Instruction *>(&I));
  }

  /// Whether control may come from behind 'From' to 'To' by no cut, one before
  /// 'To' included.
  bool reachesUncut(const Instruction *From, const Instruction *To) const {
    bool Reaches = false;
    walk(From->getNextNode(), [&](const Instruction &I) {
      if (isCut(I))
        return false;
      Reaches |= &I == To;
      return !Reaches;
    });
    return Reaches;
  }

  // --- What a cut logs -------------------------------------------------------

  /// Whether the section computes it again where it is needed.
  static bool isFree(const Value *V) {
    if (const auto *Address = dyn_cast<GetElementPtrInst>(V))
      return Address->hasAllConstantIndices();
    return isa<CastInst>(V);
  }

  /// The instructions that need a register: users, through what is computed
  /// again. A phi needs it where control leaves the block it comes from.
  using UserMap =
      MapVector<const Instruction *, SmallPtrSet<const Instruction *, 4>>;
  const UserMap &users() {
    if (!Users.empty())
      return Users;
    for (const Instruction &I : instructions(F)) {
      if (isFree(&I))
        continue;
      for (const Use &U : I.operands()) {
        const Value *V = U.get();
        while (isa<Instruction>(V) && isFree(V))
          V = cast<Instruction>(V)->getOperand(0);
        const auto *Register = dyn_cast<Instruction>(V);
        if (!Register || isa<AllocaInst>(Register))
          continue;
        const auto *Phi = dyn_cast<PHINode>(&I);
        Users[Register].insert(Phi ? Phi->getIncomingBlock(U)->getTerminator()
                                   : &I);
      }
    }
    return Users;
  }

  bool isSetBefore(const Instruction &Register,
                   const Instruction *Before) const {
    bool Reaches = false;
    walk(Register.getNextNode(), [&](const Instruction &I) {
      Reaches |= &I == Before;
      return !Reaches && !isCut(I);
    });
    return Reaches;
  }

  static bool isNeededFrom(const Instruction *Before,
                           const Instruction &Register,
                           const SmallPtrSetImpl<const Instruction *> &By) {
    bool Needed = false;
    walk(Before, [&](const Instruction &I) {
      Needed |= By.contains(&I);
      return !Needed && &I != &Register;
    });
    return Needed;
  }

  uint64_t outputBytes(const Instruction *Before) {
    uint64_t Bytes = 0;
    for (const auto &[Register, By] : users())
      if (isSetBefore(*Register, Before) && isNeededFrom(Before, *Register, By))
        Bytes +=
            alignTo(F.getDataLayout().getTypeStoreSize(Register->getType()), 8);
    return Bytes;
  }

  UserMap Users;
};

} // namespace

Regions cutIntoRegions(Function &F, const FreshFunctions &Fresh,
                       TargetLibraryInfo &Library) {
  return Cutter(F, Fresh, Library).run();
}

} // namespace holdfast
