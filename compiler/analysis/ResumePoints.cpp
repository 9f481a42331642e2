// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots of the frame:
//
// 1. Saved behind a point is what is read behind it and was set before, by
//    ordinary liveness; but not what only a section's result is made of, as far as
//    that is computed without a load or a division, which would fault, nor addresses at
//    constant offsets and casts, which are computed again of their operand.
// 2. A register that is saved behind a point, and may be set again before the next
//    one, is doubled: until that next point counts, resumption needs its former
//    value. It is written at every point behind which it is saved, to the snapshot that
//    will count there.
// 3. Any other has one slot. It is written at the first point on each path that
//    saves it: later ones find it there, since it has not been set again. Loops
//    without points write nothing.
//
// In SSA form an operand is never set again while what was computed of it may
// still be read: the operand's definition comes first on every path.
#include "analysis/ResumePoints.h"
#include "transform/FrameLocals.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace holdfast {

bool isComputedAgain(const Value *V) {
  if (const auto *Address = dyn_cast<GetElementPtrInst>(V))
    return Address->hasAllConstantIndices();
  return isa<CastInst>(V);
}

namespace {

class Planner {
public:
  Planner(Function &F, ArrayRef<ResumePoint> Points, bool Returns)
      : F(F), Points(Points), Returns(Returns) {
    for (Argument &A : F.args())
      if (!A.hasStructRetAttr())
        number(A);
    for (Instruction &I : instructions(F))
      if (!I.getType()->isVoidTy() && !isa<AllocaInst>(I))
        number(I);
    for (const ResumePoint &P : Points)
      PointBefore[P.Behind] = &P;
  }

  ResumePlan run() {
    Plan.At.resize(Points.size());
    findEssential();
    auto Live = liveIn([](const Instruction &) { return true; });
    auto Needed =
        liveIn([&](const Instruction &By) { return Essential.contains(&By); });
    for (auto [P, At] : zip(Points, Plan.At)) {
      BitVector Saved(Values.size());
      if (!P.Ends)
        for (Value *V : valuesOf(Needed[P.Behind]))
          addRegisters(V, Saved);
      At.Saved = valuesOf(Saved);
      At.Live =
          valuesOf(Saved |= Live[P.Behind]); // the next point saves it, too
    }
    findDoubled();
    findWritten();
    return std::move(Plan);
  }

private:
  using BlockBits = DenseMap<const BasicBlock *, BitVector>;

  Function &F;
  ArrayRef<ResumePoint> Points;
  const bool Returns;
  std::vector<Value *> Values;
  DenseMap<const Value *, unsigned> Numbers;
  DenseMap<const BasicBlock *, const ResumePoint *> PointBefore;
  SmallPtrSet<const Instruction *, 32> Essential;
  ResumePlan Plan;

  void number(Value &V) {
    Numbers[&V] = Values.size();
    Values.push_back(&V);
  }

  SmallVector<Value *, 8> valuesOf(const BitVector &Bits) const {
    SmallVector<Value *, 8> Found;
    for (unsigned I : Bits.set_bits())
      Found.push_back(Values[I]);
    return Found;
  }

  /// Whether the instruction does harm with operands that it was never given: a
  /// load, a division, a call. Also where it is made for the result alone, it is made
  /// again where the function goes on.
  static bool mayFault(const Instruction &I) {
    return !isa<PHINode>(I) && !isa<AllocaInst>(I) &&
           (isa<LoadInst>(I) || !isSafeToSpeculativelyExecute(&I));
  }

  /// Instructions that make more than the result, or that may do harm.
  void findEssential() {
    SmallVector<const Instruction *, 32> Left;
    for (const Instruction &I : instructions(F)) {
      const auto *Store = dyn_cast<StoreInst>(&I);
      bool OfResult = isa<ReturnInst>(I) ||
                      (Store && isOfResult(Store->getPointerOperand()));
      OfResult &= !Returns;
      if ((I.isTerminator() || I.mayHaveSideEffects() || mayFault(I)) &&
          !OfResult)
        Left.push_back(&I);
    }
    while (!Left.empty()) {
      const Instruction *I = Left.pop_back_val();
      if (!Essential.insert(I).second)
        continue;
      for (const Value *Operand : I->operand_values())
        if (const auto *Of = dyn_cast<Instruction>(Operand))
          Left.push_back(Of);
    }
  }

  /// The registers that are read by what 'Counts' in each block or behind it, and
  /// set before the block.
  BlockBits liveIn(function_ref<bool(const Instruction &)> Counts) const {
    BlockBits Reads, Sets, AtEnd, In;
    for (const BasicBlock &Block : F) {
      for (BlockBits *Bits : {&Reads, &Sets, &AtEnd, &In})
        (*Bits)[&Block].resize(Values.size());
    }
    for (const BasicBlock &Block : F)
      for (const Instruction &I : Block) {
        const auto *Phi = dyn_cast<PHINode>(&I);
        for (const Use &U : I.operands()) {
          auto Known = Numbers.find(U.get());
          if (Known == Numbers.end() || !Counts(I))
            continue;
          if (Phi)
            AtEnd[Phi->getIncomingBlock(U)].set(Known->second);
          else if (!Sets[&Block].test(Known->second))
            Reads[&Block].set(Known->second);
        }
        if (auto Known = Numbers.find(&I); Known != Numbers.end())
          Sets[&Block].set(Known->second);
      }
    for (bool Changed = true; Changed;) {
      Changed = false;
      for (const BasicBlock &Block : reverse(F)) {
        BitVector Bits = AtEnd[&Block];
        for (const BasicBlock *Next : successors(&Block))
          Bits |= In[Next];
        Bits.reset(Sets[&Block]);
        Bits |= Reads[&Block];
        if (Bits != In[&Block]) {
          In[&Block] = Bits;
          Changed = true;
        }
      }
    }
    return In;
  }

  void addRegisters(const Value *V, BitVector &To) const {
    auto Known = Numbers.find(V);
    if (Known == Numbers.end())
      return; // a constant, or a local's address
    if (!isComputedAgain(V)) {
      To.set(Known->second);
      return;
    }
    for (const Value *Operand : cast<Instruction>(V)->operand_values())
      addRegisters(Operand, To);
  }

  /// The blocks that control may come to from behind the point before the next.
  SmallPtrSet<const BasicBlock *, 16> region(const ResumePoint &P) const {
    SmallPtrSet<const BasicBlock *, 16> Seen{P.Behind};
    SmallVector<const BasicBlock *, 16> Left{P.Behind};
    while (!Left.empty())
      for (const BasicBlock *Next : successors(Left.pop_back_val()))
        if (!PointBefore.contains(Next) && Seen.insert(Next).second)
          Left.push_back(Next);
    return Seen;
  }

  /// (2)
  void findDoubled() {
    for (auto [P, At] : zip(Points, Plan.At)) {
      auto Region = region(P);
      for (Value *V : At.Saved) {
        const auto *Set = dyn_cast<Instruction>(V);
        Plan.Doubled[V] |= Set && Region.contains(Set->getParent());
      }
    }
  }

  /// (3)
  void findWritten() {
    // A bit that is set says that no path from the entry has written the value:
    // nothing there must be forgotten.
    BlockBits Found;
    for (const BasicBlock &Block : F)
      Found[&Block].resize(Values.size(), &Block != &F.getEntryBlock());
    DenseMap<const ResumePoint *, BitVector> SavedAt;
    for (auto [P, At] : zip(Points, Plan.At)) {
      BitVector &Bits = SavedAt[&P];
      Bits.resize(Values.size());
      for (Value *V : At.Saved)
        Bits.set(Numbers.lookup(V));
    }
    for (bool Changed = true; Changed;) {
      Changed = false;
      for (const BasicBlock &Block : F) {
        if (&Block == &F.getEntryBlock())
          continue;
        BitVector Bits(Values.size(), true);
        for (const BasicBlock *From : predecessors(&Block))
          Bits &= Found[From];
        if (const ResumePoint *P = PointBefore.lookup(&Block))
          Bits |= SavedAt[P];
        if (Bits != Found[&Block]) {
          Found[&Block] = Bits;
          Changed = true;
        }
      }
    }
    for (auto [P, At] : zip(Points, Plan.At)) {
      const BitVector &There = Found[P.Before];
      for (Value *V : At.Saved)
        if (V != P.Result &&
            (Plan.Doubled.lookup(V) || !There.test(Numbers.lookup(V))))
          At.Written.push_back(V);
    }
  }
};

} // namespace

ResumePlan planResumption(Function &F, ArrayRef<ResumePoint> Points,
                          bool Returns) {
  return Planner(F, Points, Returns).run();
}

} // namespace holdfast
