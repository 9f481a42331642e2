// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/ConstantTables.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/GetElementPtrTypeIterator.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"

#include <numeric>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace holdfast {

static constexpr int64_t WordBytes = 8;

bool Extent::meetsWord(int64_t At) const {
  if (!Arrays.empty()) {
    Extent Rest = *this;
    auto [Step, Count] = Rest.Arrays.pop_back_val();
    for (uint64_t I = 0; I != Count; ++I, Rest.Offset += Step)
      if (Rest.meetsWord(At))
        return true;
    return false;
  }
  // Offset + k * Stride < At + 8, and At < Offset + k * Stride + Length.
  const int64_t Below = At + WordBytes - Offset;
  if (Length == 0)
    return Stride != 0 || Below > 0;
  const int64_t Above = At - Offset - int64_t(Length);
  if (Stride == 0)
    return Above < 0 && 0 < Below;
  const int64_t Step = int64_t(Stride);
  const int64_t Over = (Above % Step + Step) % Step;
  return Above - Over + Step < Below; // the first multiple above 'Above'
}

bool isOfAddress(const Constant *C) {
  if (isa<GlobalValue>(C) || isa<BlockAddress>(C))
    return true;
  const auto *Expression = dyn_cast<ConstantExpr>(C);
  return Expression && any_of(Expression->operands(), [](const Use &Operand) {
           return isOfAddress(cast<Constant>(Operand));
         });
}

static void addAddresses(const Constant *C, uint64_t At,
                         const DataLayout &Layout,
                         SmallVectorImpl<uint64_t> &To) {
  Type *T = C->getType();
  if (const auto *Parts = dyn_cast<ConstantAggregate>(C)) {
    for (unsigned I = 0; I != Parts->getNumOperands(); ++I) {
      uint64_t Offset =
          T->isStructTy()
              ? Layout.getStructLayout(cast<StructType>(T))
                    ->getElementOffset(I)
                    .getFixedValue()
              : I * Layout.getTypeAllocSize(Parts->getOperand(I)->getType())
                        .getFixedValue();
      addAddresses(Parts->getOperand(I), At + Offset, Layout, To);
    }
  } else if (isOfAddress(C) && Layout.getTypeStoreSize(T) == WordBytes &&
             !(isa<ConstantExpr>(C) &&
               cast<ConstantExpr>(C)->getOpcode() == Instruction::Sub)) {
    To.push_back(At);
  }
}

SmallVector<uint64_t, 4> addressesIn(const GlobalVariable &Global) {
  SmallVector<uint64_t, 4> Found;
  if (Global.isConstant() && Global.hasInitializer())
    addAddresses(Global.getInitializer(), 0, Global.getDataLayout(), Found);
  return Found;
}

bool collectSpilled(const AllocaInst &Slot,
                    SmallVectorImpl<const Value *> &Stored) {
  for (const User *By : Slot.users()) {
    if (const auto *Store = dyn_cast<StoreInst>(By)) {
      if (Store->getValueOperand() == &Slot)
        return false;
      Stored.push_back(Store->getValueOperand());
    } else if (!isa<LoadInst>(By) && !isa<LifetimeIntrinsic>(By) &&
               !isa<DbgInfoIntrinsic>(By)) {
      return false;
    }
  }
  return !Stored.empty();
}

namespace {

class Walk {
public:
  using Visitor = function_ref<void(const Value &, const Extent &)>;

  void run(const Value *Address, const Extent &At, Visitor Visit) {
    follow(Address, At);
    for (auto [Object, Its] : Found) {
      Its.Stride = std::gcd(Its.Stride, LoopStep);
      Visit(*Object, Its);
    }
  }

private:
  SmallVector<std::pair<const Value *, Extent>, 4> Found;
  DenseMap<const Value *, int64_t> Joins; // with the offset first asked for
  uint64_t LoopStep = 0;                  // by which addresses move in loops

  static constexpr uint64_t PlacesMax = 4096;

  /// Returns the values of a number that grows from a constant by a constant:
  /// 'Offset' plus any multiple of 'Stride'.
  static Extent multiplesOf(const Value *V, unsigned Depth = 0) {
    const Value *Part;
    const APInt *By;
    if (const auto *C = dyn_cast<ConstantInt>(V))
      return {C->getSExtValue(), 0};
    if (Depth == 4)
      return {0, 1};
    if (const auto *Load = dyn_cast<LoadInst>(V))
      return multiplesIn(*Load);
    if (match(V, m_ZExtOrSExt(m_Value(Part))))
      return multiplesOf(Part, Depth + 1);
    if (match(V, m_Add(m_Value(Part), m_APInt(By)))) {
      Extent Sum = multiplesOf(Part, Depth + 1);
      Sum.Offset += By->getSExtValue();
      return Sum;
    }
    uint64_t Factor =
        match(V, m_Mul(m_Value(Part), m_APInt(By))) ? By->getSExtValue()
        : match(V, m_Shl(m_Value(Part), m_APInt(By))) && By->getZExtValue() < 32
            ? uint64_t{1} << By->getZExtValue()
            : 0;
    if (Factor) {
      Extent Product = multiplesOf(Part, Depth + 1);
      return {int64_t(Product.Offset * Factor), Product.Stride * Factor};
    }
    const auto *Phi = dyn_cast<PHINode>(V);
    if (!Phi)
      return {0, 1};
    const ConstantInt *First = nullptr;
    uint64_t Step = 0;
    for (const Value *In : Phi->incoming_values())
      if (const auto *C = dyn_cast<ConstantInt>(In); C && !First)
        First = C;
      else if (match(In, m_Add(m_Specific(Phi), m_APInt(By))))
        Step = std::gcd(Step, std::abs(By->getSExtValue()));
      else
        return {0, 1};
    return First ? Extent{First->getSExtValue(), Step} : Extent{0, 1};
  }

  /// Any number of a constant table: what a switch becomes that chooses among
  /// offsets.
  static Extent multiplesIn(const LoadInst &Load) {
    const auto *Table = dyn_cast<GlobalVariable>(
        getUnderlyingObject(Load.getPointerOperand(), /*MaxLookup=*/0));
    const auto *Numbers =
        Table && Table->isConstant() && Table->hasDefinitiveInitializer()
            ? dyn_cast<ConstantDataArray>(Table->getInitializer())
            : nullptr;
    if (!Numbers || Numbers->getElementType() != Load.getType() ||
        !Load.getType()->isIntegerTy())
      return {0, 1};
    Extent Found{Numbers->getElementAsAPInt(0).getSExtValue(), 0};
    for (unsigned I = 1; I != Numbers->getNumElements(); ++I)
      Found.Stride = std::gcd(
          Found.Stride, std::abs(Numbers->getElementAsAPInt(I).getSExtValue() -
                                 Found.Offset));
    return Found;
  }

  static void addOffset(const GEPOperator &Gep, Extent &At) {
    const auto *I = dyn_cast<Instruction>(&Gep);
    const auto *Global =
        dyn_cast<GlobalValue>(getUnderlyingObject(&Gep, /*MaxLookup=*/0));
    const DataLayout *Layout = I        ? &I->getDataLayout()
                               : Global ? &Global->getDataLayout()
                                        : nullptr;
    if (!Layout || Gep.getType()->isVectorTy()) {
      At.Stride = 1;
      return;
    }
    const ArrayType *Walked = nullptr; // whose element the index names
    for (auto Its = gep_type_begin(Gep), End = gep_type_end(Gep); Its != End;
         ++Its) {
      if (StructType *Struct = Its.getStructTypeOrNull()) {
        At.Offset += Layout->getStructLayout(Struct)->getElementOffset(
            cast<ConstantInt>(Its.getOperand())->getZExtValue());
        Walked = dyn_cast<ArrayType>(Its.getIndexedType());
        continue;
      }
      const ArrayType *Array =
          std::exchange(Walked, dyn_cast<ArrayType>(Its.getIndexedType()));
      uint64_t Size = Its.getSequentialElementStride(*Layout);
      Extent Index = multiplesOf(Its.getOperand());
      At.Offset += Index.Offset * int64_t(Size);
      if (Index.Stride == 0)
        continue;
      uint64_t Count = Array && Index.Offset == 0
                           ? Array->getNumElements() / Index.Stride
                           : 0;
      uint64_t Places = Count;
      for (const Extent::Array &Other : At.Arrays)
        Places *= Other.Count;
      if (Count && Places <= PlacesMax)
        At.Arrays.push_back({Size * Index.Stride, Count});
      else
        At.Stride = std::gcd(At.Stride, Size * Index.Stride);
    }
  }

  template <class Values>
  void followAll(const Value *Join, Values &&Incoming, const Extent &At) {
    auto [It, New] = Joins.try_emplace(Join, At.Offset);
    if (!New) {
      uint64_t Step = std::abs(At.Offset - It->second);
      for (const Extent::Array &Array : At.Arrays)
        Step = std::gcd(Step, Array.Stride);
      LoopStep = std::gcd(LoopStep, std::gcd(Step, At.Stride));
      return;
    }
    for (const Value *V : Incoming)
      follow(V, At);
  }

  void follow(const Value *V, Extent At) {
    for (;;) {
      if (const auto *Gep = dyn_cast<GEPOperator>(V)) {
        addOffset(*Gep, At);
        V = Gep->getPointerOperand();
      } else if (isa<BitCastOperator, AddrSpaceCastOperator>(V)) {
        V = cast<Operator>(V)->getOperand(0);
      } else if (isa<FreezeInst, ExtractElementInst>(V)) {
        V = cast<Instruction>(V)->getOperand(0);
      } else if (const auto *Alias = dyn_cast<GlobalAlias>(V);
                 Alias && !Alias->isInterposable()) {
        V = Alias->getAliasee();
      } else {
        break;
      }
    }
    if (const auto *Phi = dyn_cast<PHINode>(V))
      return followAll(V, Phi->incoming_values(), At);
    if (const auto *Choice = dyn_cast<SelectInst>(V))
      return followAll(V, ArrayRef<Use>(Choice->op_begin() + 1, 2), At);
    if (const auto *Load = dyn_cast<LoadInst>(V))
      if (const auto *Slot = dyn_cast<AllocaInst>(Load->getPointerOperand())) {
        SmallVector<const Value *, 2> Stored;
        if (collectSpilled(*Slot, Stored))
          return followAll(Slot, Stored, At);
      }
    Found.push_back({V, At});
  }
};

} // namespace

void findObjects(const Value *Address, const Extent &At,
                 function_ref<void(const Value &, const Extent &)> Visit) {
  Walk().run(Address, At, Visit);
}

Extent whereIn(const Value *Address, uint64_t Length) {
  std::optional<Extent> Only;
  bool Several = false;
  findObjects(Address, {0, 0, Length}, [&](const Value &, const Extent &At) {
    Several |= Only.has_value();
    Only = At;
  });
  return Only && !Several ? *Only : Extent{};
}

Extent moved(Extent Base, const Extent &Part) {
  Base.Offset += Part.Offset;
  Base.Stride = std::gcd(Base.Stride, Part.Stride);
  Base.Length = Part.Length;
  Base.Arrays.append(Part.Arrays);
  return Base;
}

} // namespace holdfast
