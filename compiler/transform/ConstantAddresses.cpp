// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 1. In a register a pointer is plain. In memory that may be a frame's, and in a
//    number, an address in the program is encoded: its distance from the program's
//    start, plus a mark that no address has. Every other value is plain, so code
//    that decodes need not know which of the two it reads.
// 2. So pointers are encoded where they are stored or become numbers, and decoded
//    where they are loaded or made from numbers. Bytes and numbers are copied as
//    they are. Equal values stay equal, and alignment stays.
// 3. Memory that is reached from an entry's arguments is the pool. No address in
//    the program is stored there (VolatileAddresses.cpp), so nothing is decoded.
// 4. Constants hold plain addresses. A copy of a constant is encoded in its new
//    place. A possible copy whose addresses lie at unknown places is refused.
#include "transform/ConstantAddresses.h"
#include "analysis/Calls.h"
#include "analysis/ConstantTables.h"
#include "analysis/LLVMVersions.h"
#include "transform/FrameLocals.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

#include <numeric>

using namespace llvm;

namespace holdfast {

static constexpr uint64_t WordBytes = 8;
/// What a program's own addresses span, in the code models that we know.
static constexpr uint64_t ImageBytes = uint64_t{1} << 31;
/// Not canonical: no address of a process.
static constexpr uint64_t MarkBits = 0x4846'0000'0000'0000;

GlobalVariable &imageStart(Module &M) {
  if (GlobalVariable *There = M.getNamedGlobal(ImageStart))
    return *There;
  auto *Start =
      new GlobalVariable(M, Type::getInt8Ty(M.getContext()), true,
                         GlobalValue::ExternalLinkage, nullptr, ImageStart);
  Start->setVisibility(GlobalValue::HiddenVisibility);
  Start->setDSOLocal(true);
  return *Start;
}

// --- Constants -----------------------------------------------------------------

bool mentionsTables(const Function &F) {
  return any_of(instructions(F), [](const Instruction &I) {
    return any_of(I.operands(), [](const Use &Operand) {
      const auto *Global = dyn_cast<GlobalVariable>(
          getUnderlyingObject(Operand, /*MaxLookup=*/0));
      return Global && !Global->getName().starts_with("_ZT") &&
             !addressesIn(*Global).empty();
    });
  });
}

static void addNamed(Constant &C, Addresses &To) {
  if (!isa<GlobalValue>(C)) {
    for (Use &Part : C.operands())
      if (auto *Inner = dyn_cast<Constant>(Part))
        addNamed(*Inner, To);
    return;
  }
  auto *Global = dyn_cast<GlobalVariable>(&C);
  if ((Global && Global->isThreadLocal()) || !To.insert(&C))
    return;
  // Types' descriptions are in other libraries, and no section reads them.
  if (Global && Global->isConstant() && Global->hasInitializer() &&
      !Global->getName().starts_with("_ZTI"))
    addNamed(*Global->getInitializer(), To);
}

void addNamedAddresses(const Function &F, Addresses &To) {
  for (const Instruction &I : instructions(F)) {
    const auto *Call = dyn_cast<CallBase>(&I);
    if (Call && classifyCall(*Call).Kind == CallKind::Terminates)
      continue;
    for (const Use &Operand : I.operands())
      if (auto *C = dyn_cast<Constant>(Operand);
          C && !(Call && Call->isCallee(&Operand)))
        addNamed(*C, To);
  }
}

namespace {

/// An address in a constant: so far from its begin, plus any number of strides.
struct InConstant {
  const GlobalVariable *Global;
  uint64_t Offset = 0, Stride = 0;
};

} // namespace

static InConstant placeIn(const Value *Address, const DataLayout &Layout) {
  APInt Constant(64, 0);
  VariableOffsets Variable;
  while (const auto *Gep = dyn_cast<GEPOperator>(Address)) {
    if (!Gep->collectOffset(Layout, 64, Variable, Constant))
      break;
    Address = Gep->getPointerOperand();
  }
  InConstant Found{dyn_cast<GlobalVariable>(Address)};
  for (const auto &[Index, Scale] : Variable)
    Found.Stride = std::gcd(Found.Stride, Scale.abs().getZExtValue());
  Found.Offset = Constant.getZExtValue();
  return Found;
}

/// Where among so many bytes from there addresses are, or may be.
static SmallVector<uint64_t, 4> addressesAt(const InConstant &Place,
                                            uint64_t Bytes) {
  SmallVector<uint64_t, 4> Found;
  for (uint64_t At : addressesIn(*Place.Global)) {
    uint64_t Distance = At - Place.Offset;
    if (Place.Stride != 0)
      Distance = uint64_t(
          (int64_t(Distance) % int64_t(Place.Stride) + int64_t(Place.Stride)) %
          int64_t(Place.Stride));
    for (; Distance < Bytes && Bytes - Distance >= WordBytes;
         Distance += Place.Stride) {
      if (!is_contained(Found, Distance))
        Found.push_back(Distance);
      if (Place.Stride == 0)
        break;
    }
  }
  return Found;
}

void showNumbersOfAddresses(Function &F) {
  SmallVector<Instruction *, 32> Left;
  for (Instruction &I : instructions(F))
    Left.push_back(&I);
  while (!Left.empty()) {
    Instruction *I = Left.pop_back_val();
    for (Use &Operand : I->operands()) {
      auto *Number = dyn_cast<ConstantExpr>(Operand);
      if (!Number || !Number->getType()->isIntegerTy() || !isOfAddress(Number))
        continue;
      auto *Phi = dyn_cast<PHINode>(I);
      Instruction *Shown = Number->getAsInstruction();
      Instruction *Before =
          Phi ? Phi->getIncomingBlock(Operand)->getTerminator() : I;
      Shown->insertBefore(Before->getIterator());
      Shown->setDebugLoc(I->getDebugLoc());
      if (Phi) // which has one value of each block, however often it is named
        Phi->setIncomingValueForBlock(Phi->getIncomingBlock(Operand), Shown);
      else
        Operand.set(Shown);
      Left.push_back(Shown);
    }
  }
}

// --- What the function does ------------------------------------------------------

static bool holdsPointer(Type *T) {
  return T->isPointerTy() || any_of(T->subtypes(), holdsPointer);
}

static bool isPassedInMemory(const Argument &A) {
  return A.hasByValAttr() || A.hasStructRetAttr();
}

ConstantAddresses::ConstantAddresses(Function &F, Role As, bool HasTables,
                                     Report Refuse)
    : M(*F.getParent()), Layout(F.getDataLayout()), IsEntry(As == Role::Entry) {
  for (Instruction &I : instructions(F)) {
    if (auto *Load = dyn_cast<LoadInst>(&I))
      visitLoad(*Load, Refuse);
    else if (auto *Store = dyn_cast<StoreInst>(&I)) {
      if (mayHold(*Store->getValueOperand()) &&
          mayBeFrame(Store->getPointerOperand()))
        Stores.insert(Store);
    } else if (isa<PtrToIntInst>(I)) {
      if (mayHold(*I.getOperand(0)))
        Numbers.insert(&I);
    } else if (auto *Made = dyn_cast<IntToPtrInst>(&I))
      Pointers.insert(Made);
    else if (auto *Copy = dyn_cast<MemTransferInst>(&I))
      visitCopy(*Copy, HasTables, Refuse);
  }
}

/// (3)
static bool leadsToPool(const Value *Address, bool IsEntry) {
  SmallPtrSet<const Value *, 8> Seen;
  SmallVector<const Value *, 8> Left{Address};
  while (!Left.empty()) {
    SmallVector<const Value *, 4> Objects;
    getUnderlyingObjects(Left.pop_back_val(), Objects, nullptr,
                         /*MaxLookup=*/0);
    for (const Value *Object : Objects) {
      if (!Seen.insert(Object).second)
        continue; // a loop adds nothing
      if (const auto *Load = dyn_cast<LoadInst>(Object)) {
        Left.push_back(Load->getPointerOperand());
        continue;
      }
      const auto *A = dyn_cast<Argument>(Object);
      const auto *Call = dyn_cast<CallBase>(Object);
      bool OfPool = isa<ConstantPointerNull>(Object) ||
                    isa<UndefValue>(Object) ||
                    (A && IsEntry && !isPassedInMemory(*A)) ||
                    (Call && classifyCall(*Call).Kind == CallKind::Alloc);
      if (!OfPool)
        return false;
    }
  }
  return true;
}

bool mayBeKept(const Value &Pointer, bool IsEntry) {
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(&Pointer, Objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return any_of(Objects, [IsEntry](const Value *Object) {
    return !isa<AllocaInst>(Object) && !leadsToPool(Object, IsEntry);
  });
}

bool ConstantAddresses::leadsToPool(const Value *Address) const {
  return holdfast::leadsToPool(Address, IsEntry);
}

/// An entry's result goes to its caller, which decodes nothing.
bool ConstantAddresses::mayBeFrame(const Value *Address) const {
  return !leadsToPool(Address) && !(IsEntry && isOfResult(Address));
}

bool ConstantAddresses::mayHold(const Value &V) const {
  if (!holdsPointer(V.getType()) || isa<UndefValue>(V))
    return false;
  if (!V.getType()->isPointerTy())
    return true;
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(&V, Objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return any_of(Objects, [&](const Value *Object) {
    if (const auto *A = dyn_cast<Argument>(Object))
      return !isPassedInMemory(*A);
    if (const auto *Load = dyn_cast<LoadInst>(Object))
      return !leadsToPool(Load->getPointerOperand());
    if (const auto *Call = dyn_cast<CallBase>(Object))
      return classifyCall(*Call).Kind != CallKind::Alloc;
    return !isa<ConstantPointerNull>(Object) && !isa<UndefValue>(Object) &&
           !isa<AllocaInst>(Object);
  });
}

void ConstantAddresses::visitLoad(LoadInst &Load, Report Refuse) {
  const Value *Address = Load.getPointerOperand();
  if (holdsPointer(Load.getType())) {
    if (!leadsToPool(Address))
      Loads.insert(&Load);
    return;
  }
  uint64_t Bytes = Layout.getTypeStoreSize(Load.getType());
  InConstant Place = placeIn(Address, Layout);
  if (Bytes < WordBytes || !Place.Global || addressesAt(Place, Bytes).empty())
    return;
  if (Load.getType()->isIntegerTy(8 * WordBytes))
    Numbers.insert(&Load);
  else
    Refuse("a constant that holds the address of another one is read as "
           "numbers: it is another in every process",
           Load.getDebugLoc());
}

/// (4)
void ConstantAddresses::visitCopy(MemTransferInst &Copy, bool HasTables,
                                  Report Refuse) {
  if (!mayBeFrame(Copy.getRawDest()))
    return;
  const auto *Length = dyn_cast<ConstantInt>(Copy.getLength());
  if (Length && Length->getZExtValue() < WordBytes)
    return;
  const Value *From = Copy.getRawSource();
  if (InConstant Place = placeIn(From, Layout); Place.Global) {
    if (addressesIn(*Place.Global).empty())
      return;
    if (Length)
      Copies[&Copy] = addressesAt(Place, Length->getZExtValue());
    else
      Refuse("copy of any number of bytes of a constant that holds addresses, "
             "which are others in every process: keep an index",
             Copy.getDebugLoc());
    return;
  }
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(From, Objects, nullptr, /*MaxLookup=*/0);
  bool IsKnown = all_of(Objects, [](const Value *Object) {
    const auto *Global = dyn_cast<GlobalVariable>(Object);
    return isa<AllocaInst>(Object) || (Global && addressesIn(*Global).empty());
  });
  if (HasTables && !IsKnown && !leadsToPool(From))
    Refuse("copy of what may be a constant that holds addresses, which are "
           "others in every process: keep an index",
           Copy.getDebugLoc());
}

void ConstantAddresses::addCopy(Instruction &Of, Instruction &Again) {
  if (Numbers.contains(&Of))
    Numbers.insert(&Again);
  if (auto *Made = dyn_cast<CastInst>(&Of); Made && Pointers.contains(Made))
    Pointers.insert(cast<CastInst>(&Again));
}

// --- Both ways -------------------------------------------------------------------

Constant *ConstantAddresses::image() const {
  return ConstantExpr::getPtrToInt(&imageStart(M),
                                   Type::getInt64Ty(M.getContext()));
}
Constant *ConstantAddresses::mark() const {
  return ConstantInt::get(Type::getInt64Ty(M.getContext()), MarkBits);
}

/// A word that lies in the image 'From' there lies as far in that 'To' there.
Value *ConstantAddresses::moved(IRBuilder<> &At, Value *Word, Constant *From,
                                Constant *To) const {
  if (auto *Words = dyn_cast<VectorType>(Word->getType())) {
    From = ConstantVector::getSplat(Words->getElementCount(), From);
    To = ConstantVector::getSplat(Words->getElementCount(), To);
  }
  Value *Distance = At.CreateSub(Word, From);
  return At.CreateSelect(
      At.CreateICmpULT(Distance, ConstantInt::get(Word->getType(), ImageBytes)),
      At.CreateAdd(Distance, To), Word);
}

Value *ConstantAddresses::translated(IRBuilder<> &At, Value *V, Constant *From,
                                     Constant *To) const {
  Type *T = V->getType();
  if (T->isPtrOrPtrVectorTy()) {
    Value *Word = At.CreatePtrToInt(V, Layout.getIntPtrType(T));
    return At.CreateIntToPtr(moved(At, Word, From, To), T, V->getName());
  }
  if (!T->isAggregateType() || !holdsPointer(T))
    return V;
  unsigned Count = T->isStructTy() ? T->getStructNumElements()
                                   : unsigned(T->getArrayNumElements());
  Value *All = V;
  for (unsigned I = 0; I != Count; ++I)
    All = At.CreateInsertValue(
        All, translated(At, At.CreateExtractValue(V, I), From, To), I);
  return All;
}

Value *ConstantAddresses::encoded(IRBuilder<> &At, Value *V) const {
  return translated(At, V, image(), mark());
}
Value *ConstantAddresses::decoded(IRBuilder<> &At, Value *V) const {
  return translated(At, V, mark(), image());
}

// --- The function again ----------------------------------------------------------

/// Replaces the instruction by what 'Make' makes of a copy of it.
template <class Maker> static void replace(Instruction &I, Maker Make) {
  Instruction *Again = I.clone();
  Again->insertBefore(I.getIterator());
  IRBuilder<> At(&I);
  Value *Made = Make(At, Again);
  I.replaceAllUsesWith(Made);
  Made->takeName(&I);
  I.eraseFromParent();
}

void ConstantAddresses::rewrite() {
  for (StoreInst *Store : Stores) {
    IRBuilder<> At(Store);
    Store->setOperand(0, encoded(At, Store->getValueOperand()));
  }
  for (auto &[Copy, Distances] : Copies) {
    IRBuilder<> At(Copy->getNextNode());
    for (uint64_t Distance : Distances) {
      Value *There = At.CreatePtrAdd(Copy->getRawDest(), At.getInt64(Distance));
      Value *Address = At.CreateAlignedLoad(At.getPtrTy(), There, Align(1));
      At.CreateAlignedStore(encoded(At, Address), There, Align(1));
    }
  }
  for (LoadInst *Load : Loads)
    replace(*Load,
            [&](IRBuilder<> &At, Value *Raw) { return decoded(At, Raw); });
  for (Instruction *Number : Numbers)
    replace(*Number, [&](IRBuilder<> &At, Instruction *Raw) {
      Type *T = Raw->getType();
      Value *Word = Raw;
      if (isa<PtrToIntInst>(Raw))
        Word = At.CreatePtrToInt(
            Raw->getOperand(0),
            Layout.getIntPtrType(Raw->getOperand(0)->getType()));
      return At.CreateZExtOrTrunc(moved(At, Word, image(), mark()), T);
    });
  for (CastInst *Pointer : Pointers) {
    IRBuilder<> At(Pointer);
    Value *Word = At.CreateZExtOrTrunc(
        Pointer->getOperand(0), Layout.getIntPtrType(Pointer->getType()));
    Pointer->setOperand(0, moved(At, Word, mark(), image()));
  }
}

} // namespace holdfast
