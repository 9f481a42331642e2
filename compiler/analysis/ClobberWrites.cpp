// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber analysis (Clobber §4.4), for one function of a section:
//
// 1. Candidate input reads: every read of memory that may hold an input, unless
//    a write that dominates it covers its bytes. Of a called function, what it
//    promises at most to read (CalleeReads.cpp).
// 2. Candidate clobber writes: every write of such memory that may follow a
//    candidate read and may alias it. In a helper, everything was read before
//    entry, so every such write is a candidate. Fresh memory holds no inputs:
//    writes to it are never candidates.
// 3. Refinement (Clobber Fig. 5): a candidate goes when it can never be the
//    first write of the section to a byte that was read before. Three rules,
//    below.
//
// For an engine that logs every write, all that are not to fresh memory are
// candidates; the first rule of refinement serves it as well.
//
// Why refinement is sound: take any run, any byte that is an input, and the
// first write to that byte. Each rule removes a write only by showing an
// earlier write to all the bytes in question, so no rule ever removes the first
// one; and the first one is what recovery needs.
//
// Differs from the paper: "must alias" is a statement about one loop iteration.
// We ask alias analysis in cross-iteration mode, and take two addresses as
// equal only if they are the same SSA value plus constants, with an argument
// about its instances:
//
//   (I) If A dominates B and both use value v, then between the last definition
//       of v before B and B itself, A was executed: A and B use the same
//       instance of v. (Else a path from v to B around A, put behind the first
//       path to v, would reach B without A.)
#include "analysis/ClobberWrites.h"
#include "analysis/CalleeReads.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumWrites, "Writes that may reach PM");
STATISTIC(NumFreshWrites, "Writes to memory allocated in the section");
STATISTIC(NumInputReads, "Candidate input reads");
STATISTIC(NumCandidates, "Candidate clobber writes before refinement");
STATISTIC(NumShadowed, "Candidates removed: an earlier write covers them");
STATISTIC(NumUnexposed,
          "Candidates removed: what they overwrite was never an input");
STATISTIC(NumLogged, "Writes logged");
STATISTIC(NumSelected, "Writes that the program says need no log");

static cl::opt<bool>
    Account("holdfast-account",
            cl::desc("Print what was decided about each function's writes"),
            cl::Hidden, cl::init(false));

namespace holdfast {

namespace {

/// Writes of one function, by what became of them.
struct Counts {
  unsigned Writes = 0;     ///< that may reach PM
  unsigned Fresh = 0;      ///< of memory allocated in the section
  unsigned Candidates = 0; ///< before refinement
  unsigned Shadowed = 0;   ///< candidates removed by rule 1
  unsigned Unexposed = 0;  ///< candidates removed by rules 2 and 3
  unsigned Logged = 0;
};

/// Which blocks can follow which, by at least one edge.
class Reachability {
public:
  explicit Reachability(const Function &F) : Reached(F.size()) {
    for (const BasicBlock &Block : F)
      Index[&Block] = Index.size();
  }

  /// Whether 'To' may be executed after 'From' was; both may be the same
  /// instruction.
  bool mayFollow(const Instruction *From, const Instruction *To) const {
    if (From->getParent() == To->getParent() && From != To &&
        From->comesBefore(To))
      return true;
    return behind(From->getParent()).test(Index.lookup(To->getParent()));
  }

private:
  DenseMap<const BasicBlock *, unsigned> Index;
  mutable std::vector<BitVector> Reached; ///< empty: nobody has asked yet

  const BitVector &behind(const BasicBlock *Block) const {
    BitVector &Set = Reached[Index.lookup(Block)];
    if (!Set.empty())
      return Set;
    Set.resize(Index.size());
    SmallVector<const BasicBlock *, 16> Work(successors(Block));
    while (!Work.empty()) {
      const BasicBlock *Next = Work.pop_back_val();
      unsigned I = Index.lookup(Next);
      if (Set.test(I))
        continue;
      Set.set(I);
      append_range(Work, successors(Next));
    }
    return Set;
  }
};

class Decider {
public:
  Decider(Function &F, Role As, const SectionOptions &Options,
          const FreshFunctions &Fresh, TargetLibraryInfo &Library)
      : As(As), Options(Options), Tree(F), Loops(Tree), Reach(F),
        Assumptions(F),
        Basic(F.getDataLayout(), F, Library, Assumptions, &Tree),
        Aliases(Library), Found(collectAccesses(F, Fresh, Tree, Loops)),
        Batch(queries()) {
    // One SSA value may stand for two addresses when two iterations are
    // compared.
    Batch.enableCrossIterationMode();
    Count.Writes = Found.Writes.size();
    narrowCalleeReads(Found.Reads, Fresh, Tree, Loops);
    erase_if(Found.Reads, [&](const Read &R) { return isOwnResult(R); });
    NumInputReads += Found.Reads.size();
  }

  SmallVector<LoggedWrite, 16> decide() {
    SmallVector<LoggedWrite, 16> Result;
    for (const Write &W : Found.Writes) {
      if (isSelected(W))
        continue; // noted by the call that selects it
      Verdict Why = judge(W);
      bool Log = Why == Verdict::Logged;
      Count.Logged += Log;
      Result.push_back({W, Log, Why});
    }
    return Result;
  }

  void report(const Function &F) const {
    NumWrites += Count.Writes;
    NumFreshWrites += Count.Fresh;
    NumCandidates += Count.Candidates;
    NumShadowed += Count.Shadowed;
    NumUnexposed += Count.Unexposed;
    NumLogged += Count.Logged;
    if (Account)
      errs() << "holdfast-account " << F.getName() << " writes " << Count.Writes
             << " fresh " << Count.Fresh << " candidates " << Count.Candidates
             << " shadowed " << Count.Shadowed << " unexposed "
             << Count.Unexposed << " logged " << Count.Logged << "\n";
  }

private:
  Role As;
  const SectionOptions &Options;
  DominatorTree Tree;
  LoopInfo Loops;
  Reachability Reach;
  AssumptionCache Assumptions;
  BasicAAResult Basic;
  AAResults Aliases;
  Accesses Found;
  BatchAAResults Batch;
  Counts Count;

  /// Basic alias analysis alone. Types say nothing: a section may destroy an
  /// object and construct one where it was, of another type or half a place
  /// further on. Scoped-noalias facts hold per instance of an inlined call, not
  /// across loop iterations.
  AAResults &queries() {
    Aliases.addAAResult(Basic);
    return Aliases;
  }

  /// Step 1: the function wrote these bytes before, on every path. (I) makes
  /// this sound.
  bool isOwnResult(const Read &R) const {
    return R.Address && any_of(Found.Writes, [&](const Write &Earlier) {
             return Earlier.At != R.At && Tree.dominates(Earlier.At, R.At) &&
                    Earlier.Where.covers(R.Where);
           });
  }

  /// The program has said, on every way here, that stores to all of these bytes
  /// need no log. (I) makes this sound: it is said of the same address.
  bool isSelected(const Write &W) {
    if (none_of(Found.Selections, [&](const Selection &S) {
          return Tree.dominates(S.At, W.At) && S.Where.covers(W.Where);
        }))
      return false;
    ++NumSelected;
    return true;
  }

  Verdict judge(const Write &W) {
    const LoggedWrites Logs = Options.Engine->Logs;
    if (W.From == Origin::Fresh) {
      ++Count.Fresh;
      return Verdict::Fresh;
    }
    if (Logs == LoggedWrites::inputs && Options.Parts == LogParts::VLogOnly)
      return Verdict::NoInput;
    bool Blanket = Logs == LoggedWrites::writes ||
                   Logs == LoggedWrites::selected || As == Role::Helper;
    if (!Blanket &&
        none_of(Found.Reads, [&](const Read &R) { return mayClobber(W, R); }))
      return Verdict::NoInput;
    ++Count.Candidates;
    if (!Options.Refine)
      return Verdict::Logged;
    if (isShadowed(W)) {
      ++Count.Shadowed;
      return Verdict::Covered;
    }
    if (Blanket)
      return Verdict::Logged;
    bool Exposed = any_of(Found.Reads, [&](const Read &R) {
      return mayClobber(W, R) && !isUnexposed(W, R) && !isClobberedBefore(W, R);
    });
    Count.Unexposed += !Exposed;
    return Exposed ? Verdict::Logged : Verdict::NoInput;
  }

  /// Step 2: 'W' may overwrite what 'R' has read.
  bool mayClobber(const Write &W, const Read &R) {
    // A copy reads before it writes. That goes for memcpy too: copying an
    // object onto itself changes nothing, but refinement would take it for the
    // logged first write.
    if (W.At != R.At && !Reach.mayFollow(R.At, W.At))
      return false;
    if (!R.Address)
      return true;
    return aliasOf(Batch, R, W) != AliasResult::NoAlias;
  }

  /// Rule 1, shadowed: a dominating write covers all of W's bytes. (I) makes
  /// this sound, for any read.
  bool isShadowed(const Write &W) const {
    return any_of(Found.Writes, [&](const Write &Earlier) {
      return Earlier.At != W.At && Tree.dominates(Earlier.At, W.At) &&
             Earlier.Where.covers(W.Where);
    });
  }

  /// Whether the values of 'Where' keep their instance once 'After' was
  /// executed. REQUIRES: they dominate 'After'.
  bool isStable(const Range &Where, const Instruction *After) const {
    auto Stays = [&](const Value *V) {
      const auto *I = dyn_cast_or_null<Instruction>(V);
      assert(!I || Tree.dominates(I, After));
      return !I || !Reach.mayFollow(After, I);
    };
    return Stays(Where.Base) && Stays(Where.Length);
  }

  /// Rule 2, unexposed: a write that dominates R covers all of W's bytes, so
  /// what R reads of them is the section's own result. The write and W are not
  /// related by dominance, so their common address must not be computed again
  /// in between.
  bool isUnexposed(const Write &W, const Read &R) const {
    return any_of(Found.Writes, [&](const Write &Earlier) {
      return Earlier.At != R.At && Tree.dominates(Earlier.At, R.At) &&
             Earlier.Where.covers(W.Where) &&
             isStable(Earlier.Where, Earlier.At);
    });
  }

  /// Rule 3: a write that dominates W covers all that R reads. Either it came
  /// before R, and R reads no input, or after, and it was the clobber. Both
  /// need one instance of the address.
  bool isClobberedBefore(const Write &W, const Read &R) const {
    return R.Address && any_of(Found.Writes, [&](const Write &Earlier) {
             return Earlier.At != W.At && Tree.dominates(Earlier.At, W.At) &&
                    Earlier.Where.covers(R.Where) &&
                    isStable(Earlier.Where, Earlier.At) &&
                    isStable(R.Where, R.At);
           });
  }
};

} // namespace

SmallVector<LoggedWrite, 16> decideWrites(Function &F, Role As,
                                          const SectionOptions &Options,
                                          const FreshFunctions &Fresh,
                                          TargetLibraryInfo &Library) {
  Decider D(F, As, Options, Fresh, Library);
  auto Decisions = D.decide();
  D.report(F);
  return Decisions;
}

} // namespace holdfast
