// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry of the log costs little; the ordering point between it and its write
// costs the most. So an entry moves up to an earlier write in place, whose
// ordering point it shares:
//
// 1. Writes in place, in the order of control flow, are leaders.
// 2. A logged write follows a leader under two conditions:
//    - Whenever the leader is executed, the write is, too. Between them stand
//      only accesses of memory, arithmetic, and calls of visible functions that
//      certainly return and store at most to their arguments' memory.
//    - The same instructions can compute its address before the leader: no load
//      among them sees a store between the two.
// 3. Entries of one base that touch become one. (LoopRanges.cpp has made a loop's
//    entries one before that.)
// 4. A write keeps its own call, which finds its bytes logged. A note replaces
//    the call if the leader dominates the write and its address depends on no
//    load.
//
// Why this is sound: an entry that is made too early holds older bytes. Recovery
// wants these, because it puts back the section's first. An entry must not hold
// a byte that the section does not store to: another section may have stored it
// before recovery puts it back. Hence "whenever" in 2. A section takes no locks.
// No memory is given out or back between a leader and its followers, because the
// only calls of the runtime there log and note, in order with earlier entries.
//
// Types may show that a load sees no store before it: a program that stores an
// object and reads one of another type there is undefined. They never show that
// a store overwrites nothing that was read before it (ClobberWrites.cpp).
#include "analysis/LogsAhead.h"
#include "analysis/Calls.h"
#include "analysis/LLVMVersions.h"
#include "analysis/LoopRanges.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/TypeBasedAliasAnalysis.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IntrinsicInst.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumAhead, "Log entries made ahead of their writes");
STATISTIC(NumMerged, "Log entries that became part of another");

namespace holdfast {

namespace {

/// The code that may run after one instruction and before another.
struct Stretch {
  const Instruction *From, *To;
  SmallPtrSet<const BasicBlock *, 8> Between; ///< whole blocks

  bool contains(const Instruction *I) const {
    const BasicBlock *Block = I->getParent();
    if (Between.contains(Block))
      return true;
    const bool After =
        Block != From->getParent() || (From != I && From->comesBefore(I));
    const bool Before =
        Block != To->getParent() || (To != I && I->comesBefore(To));
    return (Block == From->getParent() || Block == To->getParent()) && After &&
           Before;
  }
  /// Whether there is one for which 'Is' holds, the first among them.
  template <class Predicate> bool any(Predicate Is) const {
    auto Within = [&](const Instruction *I, const Instruction *End) {
      for (; I && I != End; I = I->getNextNode())
        if (Is(*I))
          return true;
      return false;
    };
    const BasicBlock *Last = To->getParent();
    if (From->getParent() == Last)
      return Within(From, To);
    return Within(From, nullptr) || Within(&Last->front(), To) ||
           any_of(Between, [&](const BasicBlock *Block) {
             return Within(&Block->front(), nullptr);
           });
  }
};

class Planner {
public:
  Planner(Function &F, MutableArrayRef<LoggedWrite> Writes,
          TargetLibraryInfo &Library)
      : F(F), Writes(Writes), Tree(F), Assumptions(F),
        Basic(F.getDataLayout(), F, Library, Assumptions, &Tree),
        Aliases(Library), Batch(queries()), Order(&F) {
    Batch.enableCrossIterationMode();
    for (BasicBlock *Block : Order) {
      Number[Block] = Number.size();
      if (any_of(*Block, mayStop))
        Stopped.insert(Block);
    }
    for (LoggedWrite &W : Writes)
      Listed[W.Site.At] = &W;
  }

  void plan(SmallVectorImpl<LogAhead> &Result) {
    for (LoggedWrite *W : inOrder()) {
      const size_t Latest = std::min(Groups.size(), LeadersMax);
      if (W->Log && any_of(MutableArrayRef(Groups).take_back(Latest),
                           [&](Group &G) { return follow(*W, G); }))
        continue;
      Group &Own = Groups.emplace_back(Group{W, {}});
      if (W->Log && mayBeAhead(W->Site))
        Own.Entries.push_back({W, {W->Site.Where.Base, {}}, true});
    }
    for (Group &G : Groups)
      merge(G, Result);
  }

private:
  static constexpr size_t LeadersMax = 64; ///< looked at for one write
  static constexpr size_t StepsMax = 24;

  struct Entry {
    LoggedWrite *Of;
    Recipe Base;
    bool Certain; ///< it is of the write's bytes, whatever the types say
  };
  struct Group {
    LoggedWrite *Leader;
    SmallVector<Entry, 4> Entries; ///< its own first, if it has one
  };

  Function &F;
  MutableArrayRef<LoggedWrite> Writes;
  DominatorTree Tree;
  AssumptionCache Assumptions;
  BasicAAResult Basic;
  TypeBasedAAResult Types = aliasesByType();
  AAResults Aliases;
  BatchAAResults Batch;
  ReversePostOrderTraversal<Function *> Order;
  DenseMap<const BasicBlock *, unsigned> Number; ///< in reverse post-order
  SmallPtrSet<const BasicBlock *, 16> Stopped;   ///< that hold what stops
  DenseMap<const Instruction *, LoggedWrite *> Listed;
  std::vector<Group> Groups;

  AAResults &queries() {
    Aliases.addAAResult(Basic);
    Aliases.addAAResult(Types);
    return Aliases;
  }

  SmallVector<LoggedWrite *, 16> inOrder() const {
    SmallVector<LoggedWrite *, 16> Found;
    for (BasicBlock *Block : Order)
      for (const Instruction &I : *Block)
        if (LoggedWrite *W = Listed.lookup(&I);
            W && W->Site.From != Origin::Fresh)
          Found.push_back(W);
    return Found;
  }

  /// Returns what lies between, if 'To' is executed whenever 'From' is, before
  /// 'From' is again, and nothing there stops.
  std::optional<Stretch> between(const Instruction *From,
                                 const Instruction *To) const {
    Stretch S{From, To, {}};
    const BasicBlock *First = From->getParent(), *Last = To->getParent();
    if (First == Last) {
      if (!From->comesBefore(To) || stopsWithin(First, From, To))
        return std::nullopt;
      return S;
    }
    if (stopsWithin(First, From, nullptr) || stopsWithin(Last, nullptr, To))
      return std::nullopt;
    SmallVector<const BasicBlock *, 8> Work{First};
    while (!Work.empty()) {
      const BasicBlock *Block = Work.pop_back_val();
      if (succ_empty(Block))
        return std::nullopt;
      for (const BasicBlock *Next : successors(Block)) {
        if (Next == Last)
          continue;
        // Round in a circle: is it left for certain?
        if (Next == First || Stopped.contains(Next) ||
            (Number.lookup(Next) <= Number.lookup(Block) && !F.mustProgress()))
          return std::nullopt;
        if (S.Between.insert(Next).second)
          Work.push_back(Next);
      }
    }
    return S;
  }

  /// Whether anything stops in 'Block', behind 'From' and before 'To'.
  bool stopsWithin(const BasicBlock *Block, const Instruction *From,
                   const Instruction *To) const {
    if (!Stopped.contains(Block))
      return false;
    const Instruction *I = From ? From->getNextNode() : &Block->front();
    for (; I && I != To; I = I->getNextNode())
      if (mayStop(*I))
        return true;
    return false;
  }

  /// Puts 'W' into the group, if it can be.
  bool follow(LoggedWrite &W, Group &G) {
    const Range &Where = W.Site.Where;
    const Instruction *First = G.Leader->Site.At;
    if (!mayBeAhead(W.Site) || !Tree.dominates(First, W.Site.At))
      return false;
    std::optional<Stretch> S = between(First, W.Site.At);
    if (!S)
      return false;
    Recipe Base{Where.Base, {}};
    if (!compute(Where.Base, *S, Base))
      return false;
    const bool Certain = none_of(
        Base.Steps, [](const Instruction *I) { return isa<LoadInst>(I); });
    G.Entries.push_back({&W, std::move(Base), Certain});
    return true;
  }

  /// Adds to 'Out' what it takes to have, where the stretch begins, the value
  /// that 'V' has at its end; false if there is no telling.
  bool compute(Value *V, const Stretch &S, Recipe &Out) {
    auto *I = dyn_cast<Instruction>(V);
    if (!I)
      return true;
    // An earlier instance is the one that is meant, if no other comes.
    const bool There = I != S.From && Tree.dominates(I, S.From);
    if (!S.contains(I))
      return There;
    if (There)
      return false;
    if (is_contained(Out.Steps, I))
      return true;
    if (!repeats(*I, S) || !all_of(I->operands(), [&](Value *Operand) {
          return compute(Operand, S, Out);
        }))
      return false;
    Out.Steps.push_back(I);
    return Out.Steps.size() <= StepsMax;
  }

  /// Whether the instruction, given the same operands, has the same result
  /// where the stretch begins.
  bool repeats(const Instruction &I, const Stretch &S) {
    if (const auto *Load = dyn_cast<LoadInst>(&I))
      return Load->isSimple() && !seesStore(*Load, S);
    return !isa<PHINode, FreezeInst, AllocaInst>(I) &&
           !I.mayReadOrWriteMemory() && !I.isTerminator() && !I.isEHPad() &&
           (!isa<CallBase>(I) || isa<IntrinsicInst>(I));
  }

  /// Whether the load may see what is stored in the stretch, or by the leader.
  bool seesStore(const LoadInst &Load, const Stretch &S) {
    const MemoryLocation Location = MemoryLocation::get(&Load);
    const Value *Object = getUnderlyingObject(Location.Ptr, /*MaxLookup=*/0);
    const bool Strays = mayStray(
        Location.Ptr,
        F.getDataLayout().getTypeStoreSize(Load.getType()).getKnownMinValue(),
        {&Load, &Tree, nullptr});
    return S.any([&](const Instruction &I) {
      const auto *Call = dyn_cast<CallBase>(&I);
      if (!I.mayWriteToMemory() || (Call && isSelection(*Call)))
        return false;
      // A called function may store to whatever its arguments lead to.
      if (Call && is_contained({CallKind::Body, CallKind::Elsewhere},
                               classifyCall(*Call).Kind))
        return true;
      // Objects that lie apart prove nothing about addresses that stray.
      const LoggedWrite *W = Listed.lookup(&I);
      if (W && (Strays || W->Site.Strays) &&
          getUnderlyingObject(W->Site.Address, /*MaxLookup=*/0) != Object)
        return true;
      return isModSet(Batch.getModRefInfo(&I, Location));
    });
  }

  /// Makes one of entries that touch. A leader's that stays alone is made by
  /// the leader's own call.
  void merge(Group &G, SmallVectorImpl<LogAhead> &Result) {
    SmallVectorImpl<Entry> &All = G.Entries;
    DenseMap<const Value *, unsigned> Bases;
    for (const Entry &E : All)
      Bases.try_emplace(E.Base.Result, Bases.size());
    auto Key = [&](const Entry &E) {
      return std::pair(Bases.lookup(E.Base.Result), E.Of->Site.Where.Offset);
    };
    llvm::sort(All,
               [&](const Entry &A, const Entry &B) { return Key(A) < Key(B); });
    for (size_t First = 0, Next = 0; First != All.size(); First = Next) {
      const Range &From = All[First].Of->Site.Where;
      int64_t End = From.Offset;
      for (; Next != All.size(); ++Next) {
        const Range &R = All[Next].Of->Site.Where;
        if (R.Base != From.Base || R.Offset > End)
          break;
        End = std::max(End, R.Offset + int64_t(R.Bytes));
      }
      if (Next == First + 1 && All[First].Of == G.Leader)
        continue;
      for (const Entry &E : ArrayRef(All).slice(First, Next - First))
        E.Of->Log &= !E.Certain;
      NumMerged += Next - First - 1;
      ++NumAhead;
      Result.push_back({G.Leader->Site.At, std::move(All[First].Base),
                        From.Offset, uint64_t(End - From.Offset), nullptr});
    }
  }
};

} // namespace

bool mayBeAhead(const Write &W) { return W.Where.Bytes && !W.Strays; }

/// Whether the function, whose body is visible, comes back for certain, and
/// neither takes nor gives back anything.
static bool comesBack(const CallBase &Call) {
  return Call.hasFnAttr(Attribute::WillReturn) && Call.doesNotThrow() &&
         (Call.onlyReadsMemory() || Call.onlyAccessesArgMemory());
}

bool mayStop(const Instruction &I) {
  const auto *Call = dyn_cast<CallBase>(&I);
  if (!Call)
    return !I.isTerminator() && (I.isVolatile() || I.isAtomic());
  switch (classifyCall(*Call).Kind) {
  case CallKind::Reads:
  case CallKind::Writes:
    return false;
  case CallKind::NoAccess:
    return !isa<IntrinsicInst>(Call) && !isSelection(*Call);
  case CallKind::Body:
    return !comesBack(*Call);
  default:
    return true;
  }
}

SmallVector<LogAhead, 8> planLogsAhead(Function &F,
                                       MutableArrayRef<LoggedWrite> Writes,
                                       TargetLibraryInfo &Library) {
  SmallVector<LogAhead, 8> Result;
  planLoopRanges(F, Writes, Library, Result);
  Planner(F, Writes, Library).plan(Result);
  return Result;
}

} // namespace holdfast
