// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Accesses.h"
#include "analysis/Calls.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace holdfast {

bool Range::covers(const Range &Other) const {
  if (Base != Other.Base)
    return false;
  if (Bytes && Other.Bytes)
    return Offset <= Other.Offset &&
           Other.Offset + int64_t(Other.Bytes) <= Offset + int64_t(Bytes);
  return Length && Length == Other.Length && Offset == Other.Offset;
}

namespace {

class Collector {
public:
  Collector(Function &F, const FreshFunctions &Fresh, const DominatorTree &Tree,
            const LoopInfo &Loops, bool FreshReads)
      : Layout(F.getDataLayout()), Fresh(Fresh), Tree(Tree), Loops(Loops),
        FreshReads(FreshReads) {}

  Accesses Found;

  void visit(Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I))
      return read(I, Load->getPointerOperand(), storeBytes(Load->getType()),
                  nullptr, MemoryLocation::get(Load));
    if (auto *Store = dyn_cast<StoreInst>(&I))
      write(I, Store->getPointerOperand(),
            storeBytes(Store->getValueOperand()->getType()), nullptr,
            MemoryLocation::get(Store));
    else if (auto *Call = dyn_cast<CallBase>(&I))
      visitCall(*Call);
  }

private:
  const DataLayout &Layout;
  const FreshFunctions &Fresh;
  const DominatorTree &Tree;
  const LoopInfo &Loops;
  const bool FreshReads;

  uint64_t storeBytes(Type *T) const {
    return Layout.getTypeStoreSize(T).getKnownMinValue();
  }

  Range rangeOf(Value *Address, uint64_t Bytes, Value *Length) const {
    APInt Offset(Layout.getIndexTypeSizeInBits(Address->getType()), 0);
    Range R;
    R.Base = Address->stripAndAccumulateConstantOffsets(
        Layout, Offset, /*AllowNonInbounds=*/true);
    R.Offset = Offset.getSExtValue();
    R.Bytes = Bytes;
    R.Length = Length;
    if (auto *Constant = dyn_cast_or_null<ConstantInt>(Length)) {
      R.Bytes = Constant->getZExtValue();
      R.Length = nullptr;
    }
    return R;
  }

  static MemoryLocation locate(Value *Address, const Range &R) {
    return R.Bytes ? MemoryLocation(Address, LocationSize::precise(R.Bytes))
                   : MemoryLocation::getBeforeOrAfter(Address);
  }

  void read(Instruction &I, Value *Address, uint64_t Bytes, Value *Length,
            std::optional<MemoryLocation> Location = std::nullopt) {
    auto [From, Strays] = originAt(I, Address, Bytes);
    if (From != Origin::Unknown && !(FreshReads && From == Origin::Fresh))
      return;
    Range R = rangeOf(Address, Bytes, Length);
    Found.Reads.push_back(
        {&I, Address, R, Location ? *Location : locate(Address, R), Strays});
  }

  Met originAt(Instruction &I, Value *Address, uint64_t Bytes) const {
    return originOfAccess(Address, Bytes, {&I, &Tree, &Loops}, Fresh);
  }

  Write *write(Instruction &I, Value *Address, uint64_t Bytes, Value *Length,
               std::optional<MemoryLocation> Location = std::nullopt) {
    auto [From, Strays] = originAt(I, Address, Bytes);
    if (From == Origin::Local)
      return nullptr;
    Range R = rangeOf(Address, Bytes, Length);
    if (isa_and_nonnull<ConstantInt>(Length) && R.Bytes == 0)
      return nullptr; // writes nothing
    Found.Writes.push_back({&I, Address, R,
                            Location ? *Location : locate(Address, R), From,
                            Strays});
    return &Found.Writes.back();
  }

  /// Aggregates go in and out through memory, and the optimiser elides copies:
  /// the call itself then reads or writes PM, whatever the callee promises.
  void visitPassedInMemory(CallBase &Call) {
    bool IsVisible =
        is_contained({CallKind::Body, CallKind::Elsewhere, CallKind::Indirect},
                     classifyCall(Call).Kind);
    for (unsigned A = 0; A != Call.arg_size(); ++A) {
      if (Type *Passed = Call.getParamByValType(A))
        read(Call, Call.getArgOperand(A), storeBytes(Passed), nullptr);
      Type *Result = Call.getParamStructRetType(A);
      if (Result && !IsVisible) // else its stores are instrumented
        write(Call, Call.getArgOperand(A), storeBytes(Result), nullptr);
    }
  }

  void visitCall(CallBase &Call) {
    visitPassedInMemory(Call);
    if (auto *Memory = dyn_cast<MemIntrinsic>(&Call)) {
      if (auto *Transfer = dyn_cast<MemTransferInst>(Memory))
        read(Call, Transfer->getRawSource(), 0, Memory->getLength());
      write(Call, Memory->getRawDest(), 0, Memory->getLength());
      return;
    }
    if (isSelection(Call)) {
      Found.Selections.push_back(
          {&Call, rangeOf(Call.getArgOperand(0), 0, Call.getArgOperand(1))});
      return;
    }
    switch (classifyCall(Call).Kind) {
    case CallKind::Body:
    case CallKind::Elsewhere:
      // Its writes are logged inside; its reads may be of anything.
      if (!Call.doesNotAccessMemory())
        Found.Reads.push_back({&Call, nullptr, {}, {}});
      return;
    case CallKind::Logs: // the same; and what it calls back may read anything
      Found.Reads.push_back({&Call, nullptr, {}, {}});
      return;
    case CallKind::Reads:
      if (readsAnywhere(Call)) {
        Found.Reads.push_back({&Call, nullptr, {}, {}});
        return;
      }
      for (Value *Operand : Call.args())
        if (Operand->getType()->isPointerTy())
          read(Call, Operand, 0, nullptr);
      return;
    case CallKind::Writes:
      return visitRangeWriter(Call, *findRangeWriter(Call));
    default:
      return;
    }
  }

  void visitRangeWriter(CallBase &Call, const RangeWriter &Shape) {
    Value *Length =
        Shape.Length < 0 ? nullptr : Call.getArgOperand(Shape.Length);
    if (Shape.Source >= 0)
      read(Call, Call.getArgOperand(Shape.Source), Shape.FixedBytes, Length);
    Write *W = write(Call, Call.getArgOperand(Shape.Destination),
                     Shape.FixedBytes, Length);
    if (W && !Length && !Shape.FixedBytes) {
      W->LengthIsString = true;
      W->Source = Shape.Source;
    }
  }
};

} // namespace

Met originOfAccess(const Value *Address, uint64_t Bytes, const Place &Where,
                   const FreshFunctions &Fresh) {
  Origin From = originOf(Address, Fresh, Where.Loops);
  if ((From == Origin::Preserved || From == Origin::Constant) &&
      !(mayBeNull(Address) && mayStray(Address, Bytes, Where)))
    return {From, false};
  bool Strays = mayStray(Address, Bytes, Where);
  return {Strays ? Origin::Unknown : From, Strays};
}

Accesses collectAccesses(Function &F, const FreshFunctions &Fresh,
                         const DominatorTree &Tree, const LoopInfo &Loops,
                         bool FreshReads) {
  Collector C(F, Fresh, Tree, Loops, FreshReads);
  for (Instruction &I : instructions(F))
    C.visit(I);
  return std::move(C.Found);
}

bool readsAnywhere(const CallBase &Call) {
  return isa<IntrinsicInst>(Call) &&
         (!Call.onlyAccessesArgMemory() ||
          any_of(Call.args(), [](const Value *Operand) {
            return Operand->getType()->isVectorTy() &&
                   Operand->getType()->isPtrOrPtrVectorTy();
          }));
}

AliasResult aliasOf(BatchAAResults &Queries, const Read &R, const Write &W) {
  if ((R.Strays || W.Strays) &&
      getUnderlyingObject(R.Address, /*MaxLookup=*/0) !=
          getUnderlyingObject(W.Address, /*MaxLookup=*/0))
    return AliasResult::MayAlias;
  return Queries.alias(R.Location.getWithoutAATags(),
                       W.Location.getWithoutAATags());
}

} // namespace holdfast
