// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop that adds to every element of an array asks for an entry, and an
// ordering point, for each. Where it is known before the loop which bytes it
// will store to, one entry has them all:
//
// 1. The loop runs a number of times that can be computed before it, and nothing
//    in it stops (mayStop).
// 2. A write is made in every iteration, and moves by the same distance from one
//    to the next. Then it is made as often as there are iterations.
// 3. Writes that move by the same distance and whose first places lie a constant
//    apart make a band: they touch each other, and cover at least that distance.
//    So the loop stores to every byte between its first and its last, and the
//    range is exact. A byte that the loop leaves out could be under another lock,
//    or in no page.
//
// The range is logged before the loop, in a new block if necessary, where the loop
// certainly runs: its test comes behind the first iteration.
#include "analysis/LoopRanges.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumLoopRanges, "Ranges logged before a loop");

namespace holdfast {

namespace {

/// A write of the loop: 'Bytes' at Low, Low + Step … Low + Last * Step.
struct Moving {
  LoggedWrite *Of;
  const SCEV *Low;
  uint64_t Step; ///< positive: the lowest place comes first
};

class LoopPlanner {
public:
  LoopPlanner(Function &F, TargetLibraryInfo &Library)
      : F(F), Tree(F), Loops(Tree), Assumptions(F),
        Evolution(F, Library, Assumptions, Tree, Loops),
        Expander(Evolution, F.getDataLayout(), "hf.range") {}

  void plan(MutableArrayRef<LoggedWrite> Writes,
            SmallVectorImpl<LogAhead> &Result) {
    MapVector<Loop *, SmallVector<LoggedWrite *, 8>> Inside;
    for (LoggedWrite &W : Writes)
      if (W.Log && mayBeAhead(W.Site))
        if (Loop *L = Loops.getLoopFor(W.Site.At->getParent()))
          Inside[L].push_back(&W);
    for (auto &[L, Its] : Inside)
      planLoop(*L, Its, Result);
  }

private:
  Function &F;
  DominatorTree Tree;
  LoopInfo Loops;
  AssumptionCache Assumptions;
  ScalarEvolution Evolution;
  SCEVExpander Expander;

  void planLoop(Loop &L, ArrayRef<LoggedWrite *> Inside,
                SmallVectorImpl<LogAhead> &Result) {
    const SCEV *Last = Evolution.getBackedgeTakenCount(&L);
    if (isa<SCEVCouldNotCompute>(Last) ||
        (!L.isInnermost() && !F.mustProgress()) ||
        any_of(L.blocks(),
               [](const BasicBlock *Block) { return any_of(*Block, mayStop); }))
      return;
    Last = Evolution.getTruncateOrZeroExtend(Last,
                                             Type::getInt64Ty(F.getContext()));
    SmallVector<Moving, 8> All;
    for (LoggedWrite *W : Inside)
      if (std::optional<Moving> M = moving(*W, L, Last))
        All.push_back(*M);
    // The optimiser has taken an empty block before the loop away.
    BasicBlock *Before = L.getLoopPreheader();
    if (!Before && !All.empty())
      Before = InsertPreheaderForLoop(&L, &Tree, &Loops, /*MSSAU=*/nullptr,
                                      /*PreserveLCSSA=*/false);
    if (!Before)
      return;
    while (!All.empty()) {
      SmallVector<std::pair<int64_t, Moving>, 8> Near = takeNear(All);
      Result.append(planBands(Near, *Before->getTerminator(), Last));
    }
  }

  /// Returns how the write moves, if it does so evenly and in every iteration.
  std::optional<Moving> moving(LoggedWrite &W, const Loop &L,
                               const SCEV *Last) {
    SmallVector<BasicBlock *, 4> Ends;
    L.getExitingBlocks(Ends);
    L.getLoopLatches(Ends);
    const BasicBlock *Block = W.Site.At->getParent();
    if (!all_of(Ends, [&](const BasicBlock *End) {
          return Tree.dominates(Block, End);
        }))
      return std::nullopt;
    const auto *Place =
        dyn_cast<SCEVAddRecExpr>(Evolution.getSCEV(W.Site.Address));
    const auto *By =
        Place && Place->getLoop() == &L && Place->isAffine()
            ? dyn_cast<SCEVConstant>(Place->getStepRecurrence(Evolution))
            : nullptr;
    if (!By || By->getAPInt().getSignificantBits() > 32 || By->isZero())
      return std::nullopt;
    const int64_t Step = By->getAPInt().getSExtValue();
    const SCEV *Low = Place->getStart();
    if (Step < 0)
      Low = Evolution.getAddExpr(
          Low, Evolution.getMulExpr(
                   Last, Evolution.getConstant(Last->getType(), Step, true)));
    return Moving{&W, Low, uint64_t(std::abs(Step))};
  }

  /// Takes those out of 'All' that move as the first does, a constant distance
  /// from it; in the order of their places.
  SmallVector<std::pair<int64_t, Moving>, 8>
  takeNear(SmallVectorImpl<Moving> &All) {
    const Moving First = All.front();
    SmallVector<std::pair<int64_t, Moving>, 8> Near;
    erase_if(All, [&](const Moving &M) {
      const auto *Apart =
          dyn_cast<SCEVConstant>(Evolution.getMinusSCEV(M.Low, First.Low));
      if (!Apart || M.Step != First.Step)
        return false;
      Near.emplace_back(Apart->getAPInt().getSExtValue(), M);
      return true;
    });
    llvm::sort(Near, llvm::less_first());
    return Near;
  }

  /// Plans an entry for each band.
  SmallVector<LogAhead, 2> planBands(ArrayRef<std::pair<int64_t, Moving>> Near,
                                     Instruction &Before, const SCEV *Last) {
    SmallVector<LogAhead, 2> Planned;
    int64_t PlannedEnd = 0; // where the last one ends, if that is a constant
    for (size_t First = 0, Next = 0; First != Near.size(); First = Next) {
      const auto &[Begin, Lowest] = Near[First];
      int64_t End = Begin;
      for (; Next != Near.size() && Near[Next].first <= End; ++Next)
        End =
            std::max(End, Near[Next].first +
                              int64_t(Near[Next].second.Of->Site.Where.Bytes));
      const auto Width = uint64_t(End - Begin);
      const SCEV *Bytes = bytesOf(Last, Lowest.Step, Width);
      if (Width < Lowest.Step ||
          !Expander.isSafeToExpandAt(Lowest.Low, &Before) ||
          !Expander.isSafeToExpandAt(Bytes, &Before))
        continue;
      for (const auto &[Offset, M] : Near.slice(First, Next - First))
        M.Of->Log = false;
      const auto *Known = dyn_cast<SCEVConstant>(Bytes);
      if (Known && !Planned.empty() && Begin == PlannedEnd) {
        Planned.back().Bytes += Known->getAPInt().getZExtValue();
      } else {
        ++NumLoopRanges;
        LogAhead &Entry = Planned.emplace_back();
        Entry.Before = &Before;
        Entry.Base.Result = Expander.expandCodeFor(
            Lowest.Low, Lowest.Of->Site.Address->getType(), &Before);
        if (Known)
          Entry.Bytes = Known->getAPInt().getZExtValue();
        else
          Entry.Length =
              Expander.expandCodeFor(Bytes, Bytes->getType(), &Before);
      }
      if (Known)
        PlannedEnd = Begin + Known->getAPInt().getSExtValue();
    }
    return Planned;
  }

  /// Returns how many bytes a band of that width comes over.
  const SCEV *bytesOf(const SCEV *Last, uint64_t Step, uint64_t Width) {
    const SCEV *Way = Evolution.getMulExpr(
        Last, Evolution.getConstant(Last->getType(), Step));
    return Evolution.getAddExpr(Way,
                                Evolution.getConstant(Last->getType(), Width));
  }
};

} // namespace

void planLoopRanges(Function &F, MutableArrayRef<LoggedWrite> Writes,
                    TargetLibraryInfo &Library,
                    SmallVectorImpl<LogAhead> &Result) {
  LoopPlanner(F, Library).plan(Writes, Result);
}

} // namespace holdfast
