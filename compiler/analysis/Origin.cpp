// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/Origin.h"
#include "analysis/Calls.h"
#include "analysis/LLVMVersions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PointerIntPair.h"
#include "llvm/Analysis/CFG.h"
#include "llvm/Analysis/SimplifyQuery.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/ConstantRange.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace holdfast {

bool isToolGlobal(const GlobalVariable &Global) {
  StringRef Name = Global.getName();
  return Name.starts_with("__profc_") || Name.starts_with("__profd_") ||
         Name.starts_with("__llvm_gcov") || Name.starts_with("__sancov_") ||
         Name.starts_with("__ubsan_");
}

bool neverChanges(const GlobalVariable &Global) {
  return Global.isConstant() && Global.hasDefinitiveInitializer();
}

/// Tables for virtual calls and type information: read by the language, never
/// by name, and of one content wherever their class is the same.
static bool isLanguageTable(const GlobalVariable &Global) {
  StringRef Name = Global.getName();
  return Name.starts_with("_ZTV") || Name.starts_with("_ZTT") ||
         Name.starts_with("_ZTC") || Name.starts_with("_ZTI") ||
         Name.starts_with("_ZTS");
}

const GlobalValue *findMutableGlobal(const Constant &Of) {
  SmallPtrSet<const Constant *, 8> Seen;
  SmallVector<const Constant *, 8> Left{&Of};
  while (!Left.empty()) {
    const Constant *C = Left.pop_back_val();
    if (!Seen.insert(C).second)
      continue;
    if (const auto *Global = dyn_cast<GlobalVariable>(C)) {
      if (isToolGlobal(*Global) || isLanguageTable(*Global))
        continue;
      if (!neverChanges(*Global))
        return Global;
    }
    if (const auto *Alias = dyn_cast<GlobalAlias>(C);
        Alias && Alias->isInterposable() &&
        !isa<Function>(Alias->getAliaseeObject()))
      return Alias;
    if (isa<Function>(C) || isa<GlobalIFunc>(C) || isa<BlockAddress>(C))
      continue;
    for (const Use &Operand : C->operands()) // of a global: its initialiser
      Left.push_back(cast<Constant>(Operand.get()));
  }
  return nullptr;
}

/// Memory outside of every file mapping. Exceptions lie in the language's own,
/// errno in the C library's.
static bool isElsewhere(const Value *Object) {
  if (const auto *Argument = dyn_cast<llvm::Argument>(Object))
    return Argument->hasByValAttr();
  if (const auto *Call = dyn_cast<IntrinsicInst>(Object))
    return Call->getIntrinsicID() == Intrinsic::threadlocal_address;
  if (const auto *Call = dyn_cast<CallBase>(Object)) {
    const Function *Callee = calledFunction(*Call);
    return Callee &&
           (isErrno(*Call) ||
            is_contained({"__cxa_allocate_exception", "__cxa_begin_catch",
                          "__cxa_get_exception_ptr"},
                         Callee->getName()));
  }
  return isa<AllocaInst>(Object) || isa<GlobalValue>(Object) ||
         isa<ConstantPointerNull>(Object) || isa<UndefValue>(Object);
}

bool mayBePM(const Value *Address) {
  if (Address->getType()->getScalarType()->getPointerAddressSpace() != 0)
    return false; // the x86 segments fs and gs
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Address, Objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return !all_of(Objects, isElsewhere) || mayStray(Address, 0);
}

static Origin originOfObject(const Value *Object, const FreshFunctions &Fresh) {
  if (isa<AllocaInst>(Object))
    return Origin::Local;
  if (const auto *Argument = dyn_cast<llvm::Argument>(Object))
    return Argument->hasByValAttr() ? Origin::Local : Origin::Unknown;
  if (const auto *Global = dyn_cast<GlobalVariable>(Object)) {
    if (neverChanges(*Global))
      return Origin::Constant;
    return isToolGlobal(*Global) ? Origin::Local : Origin::Unknown;
  }
  if (isa<Function>(Object))
    return Origin::Constant;
  if (const auto *Call = dyn_cast<CallBase>(Object)) {
    switch (classifyCall(*Call).Kind) {
    case CallKind::Alloc:
      return Origin::Fresh;
    case CallKind::Preserve:
      return Origin::Preserved;
    case CallKind::Body:
      return Fresh.contains(calledFunction(*Call)) ? Origin::Fresh
                                                   : Origin::Unknown;
    default:
      return Origin::Unknown;
    }
  }
  return Origin::Unknown;
}

Origin originOf(const Value *Pointer, const FreshFunctions &Fresh,
                const LoopInfo *Loops) {
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Pointer, Objects, const_cast<LoopInfo *>(Loops),
                       /*MaxLookup=*/0);

  std::optional<Origin> Common;
  for (const Value *Object : Objects) {
    if (isa<ConstantPointerNull>(Object) || isa<UndefValue>(Object))
      continue; // nothing is there to be read or written
    Origin One = originOfObject(Object, Fresh);
    if (!Common || *Common == One) {
      Common = One;
      continue;
    }
    bool OwnMemory = (One == Origin::Fresh || One == Origin::Local) &&
                     (*Common == Origin::Fresh || *Common == Origin::Local);
    if (!OwnMemory)
      return Origin::Unknown;
    Common = Origin::Fresh;
  }
  return Common.value_or(Origin::Unknown);
}

namespace {

/// Looks for uses that let other code subtract an object's address from another:
/// as a number, from memory, or in a function that keeps it. A comparison or a
/// return is no such use.
class AddressUses : public CaptureVisitor {
public:
  explicit AddressUses(const Place &Where) : Where(Where) {}

  bool Known = false;

  void tooManyUses() override { Known = true; }
  bool stopsAt(const Use *U) override {
    const auto *By = cast<Instruction>(U->getUser());
    if (isa<ICmpInst>(By) || isa<ReturnInst>(By))
      return false;
    Known = !Where.At || isPotentiallyReachable(By, Where.At, nullptr,
                                                Where.Tree, Where.Loops);
    return Known;
  }

private:
  const Place &Where;
};

/// Whether the condition, if it holds or does not, says that 'V' is not null.
static bool saysNotNull(const Value *Condition, bool Holds, const Value &V) {
  ComparedBy Is;
  if (match(Condition, m_ICmp(Is, m_Specific(&V), m_Zero())))
    return Is == (Holds ? ICmpInst::ICMP_NE : ICmpInst::ICMP_EQ);
  const Value *One, *Other;
  if (Holds ? !match(Condition, m_LogicalAnd(m_Value(One), m_Value(Other)))
            : !match(Condition, m_LogicalOr(m_Value(One), m_Value(Other))))
    return false;
  return saysNotNull(One, Holds, V) || saysNotNull(Other, Holds, V);
}

/// Returns what getUnderlyingObject looks through to, besides offsets; null
/// if nothing.
static const Value *withoutOffset(const Value *V) {
  if (isa<BitCastOperator>(V) || isa<AddrSpaceCastOperator>(V))
    return cast<Operator>(V)->getOperand(0);
  if (const auto *Alias = dyn_cast<GlobalAlias>(V))
    return Alias->isInterposable() ? nullptr : Alias->getAliasee();
  if (const auto *Call = dyn_cast<CallBase>(V))
    return getArgumentAliasingToReturnedPointer(Call,
                                                /*MustPreserveNullness=*/false);
  return nullptr;
}

/// Follows an address down to its objects, and adds up how far from them it may
/// be.
class Strayer {
public:
  Strayer(uint64_t Bytes, const Place &Where) : Bytes(Bytes), Where(Where) {}

  bool mayStray(const Value *V, ConstantRange Offset) {
    for (;;) {
      if (const auto *Gep = dyn_cast<GEPOperator>(V)) {
        Offset = Offset.add(offsetOf(*Gep));
        V = Gep->getPointerOperand();
      } else if (const Value *Same = withoutOffset(V)) {
        V = Same;
      } else {
        break;
      }
    }
    if (const auto *Phi = dyn_cast<PHINode>(V))
      return mayStrayAny(*Phi, Offset, Phi->incoming_values());
    if (const auto *Choice = dyn_cast<SelectInst>(V))
      return mayStrayAny(*Choice, Offset,
                         ArrayRef<Use>(Choice->op_begin() + 1, 2));
    return mayLeave(*V, Offset);
  }

private:
  static constexpr unsigned UsesMax = 1000;
  /// No program has memory there: fields of an object at null.
  static constexpr uint64_t NullBytes = 1 << 16;
  const uint64_t Bytes;
  const Place &Where;
  DenseMap<const Value *, ConstantRange> Seen;

  static ConstantRange anywhere() { return ConstantRange::getFull(64); }

  ConstantRange offsetOf(const GEPOperator &Gep) const {
    const auto *I = dyn_cast<Instruction>(&Gep);
    VariableOffsets Parts;
    APInt Fixed(64, 0);
    if (!I || Gep.getType()->isVectorTy())
      return anywhere(); // a constant expression is about a global
    const DataLayout &Layout = I->getDataLayout();
    if (!Gep.collectOffset(Layout, 64, Parts, Fixed))
      return anywhere();
    ConstantRange Sum(Fixed);
    SimplifyQuery Query(Layout, Where.Tree, /*AC=*/nullptr, Where.At);
    for (const auto &[Index, Scale] : Parts)
      Sum = Sum.add(computeConstantRangeIncludingKnownBits(
                        Index, /*ForSigned=*/true, Query)
                        .sextOrTrunc(64)
                        .multiply(ConstantRange(Scale)));
    return Sum;
  }

  /// Whether the program has looked, on every way to the access: what
  /// hf::make_array returns is null or a block. REQUIRES: no join lies between
  /// this one and the access, so that check and access use the same instance
  /// (ClobberWrites.cpp, I).
  bool isNotNull(const Value &Join) const {
    if (!Where.At || !Where.Tree)
      return false;
    const BasicBlock *Here = Where.At->getParent();
    for (const auto *Node = Where.Tree->getNode(Here); Node && Node->getIDom();
         Node = Node->getIDom()) {
      const BasicBlock *Block = Node->getIDom()->getBlock();
      const auto *Branch = dyn_cast<BranchInst>(Block->getTerminator());
      if (!Branch || !Branch->isConditional())
        continue;
      for (bool Holds : {true, false}) {
        BasicBlockEdge Edge(Block, Branch->getSuccessor(Holds ? 0 : 1));
        if (saysNotNull(Branch->getCondition(), Holds, Join) &&
            Where.Tree->dominates(Edge, Here))
          return true;
      }
    }
    return false;
  }

  template <class Values>
  bool mayStrayAny(const Value &Join, const ConstantRange &Offset,
                   Values &&Incoming) {
    auto [It, New] = Seen.try_emplace(&Join, Offset);
    if (!New) {
      if (It->second.contains(Offset))
        return false;          // is being asked already
      It->second = anywhere(); // it moves from one iteration to the next
    }
    ConstantRange From = It->second;
    const bool NotNull = New && Seen.size() == 1 && isNotNull(Join);
    return any_of(Incoming, [&](const Use &U) {
      return !(NotNull && isa<ConstantPointerNull>(U.get())) &&
             mayStray(U.get(), From);
    });
  }

  /// Returns the object's size; none where it is not known.
  static std::optional<uint64_t> sizeOf(const Value &Object) {
    if (const auto *Local = dyn_cast<AllocaInst>(&Object)) {
      auto Size = Local->getAllocationSize(Local->getDataLayout());
      if (Size && !Size->isScalable())
        return Size->getFixedValue();
    } else if (const auto *Passed = dyn_cast<Argument>(&Object)) {
      return Passed->getParent()->getDataLayout().getTypeStoreSize(
          Passed->getParamByValType());
    } else if (const auto *Call = dyn_cast<CallBase>(&Object)) {
      if (classifyCall(*Call).Kind == CallKind::Alloc)
        if (const auto *Asked = dyn_cast<ConstantInt>(Call->getArgOperand(0)))
          return Asked->getZExtValue();
    }
    return std::nullopt;
  }

  bool mayLeave(const Value &Object, const ConstantRange &Offset) const {
    if (isa<ConstantPointerNull>(Object)) // an address made from a number
      return Offset.getUnsignedMax().uge(NullBytes);
    const auto *Passed = dyn_cast<Argument>(&Object);
    if (!isa<AllocaInst>(Object) && !isa<CallBase>(Object) &&
        !(Passed && Passed->hasByValAttr()))
      return false;
    APInt Least = Offset.getSignedMin(), Most = Offset.getSignedMax();
    std::optional<uint64_t> Size = sizeOf(Object);
    if (Size && Least.isNonNegative() && Bytes <= *Size &&
        Most.ule(*Size - Bytes))
      return false;
    if (!Size && Offset.isSingleElement())
      return Least.isNegative() && classifyAlloc(Object);
    AddressUses Uses(Where);
    PointerMayBeCaptured(&Object, &Uses, UsesMax);
    return Uses.Known;
  }

  static bool classifyAlloc(const Value &Object) {
    const auto *Call = dyn_cast<CallBase>(&Object);
    return Call && classifyCall(*Call).Kind == CallKind::Alloc;
  }
};

} // namespace

bool mayStray(const Value *Address, uint64_t Bytes, const Place &Where) {
  return Strayer(Bytes, Where).mayStray(Address, ConstantRange(APInt(64, 0)));
}

bool mayBeNull(const Value *Address) {
  SmallVector<const Value *, 4> Objects;
  getUnderlyingObjects(Address, Objects, /*LI=*/nullptr, /*MaxLookup=*/0);
  return any_of(Objects, IsaPred<ConstantPointerNull>);
}

bool mayBeNumber(const Value *Address) {
  using Step = PointerIntPair<const Value *, 1, bool>; // whether it is moved
  SmallVector<Step, 8> Left{{Address, false}};
  SmallDenseSet<Step, 8> Seen;
  while (!Left.empty()) {
    Step Next = Left.pop_back_val();
    if (!Seen.insert(Next).second)
      continue;
    const Value *V = Next.getPointer();
    bool Moved = Next.getInt();
    if (const auto *Gep = dyn_cast<GEPOperator>(V))
      // Inside of an object nothing is at a distance from null.
      Left.push_back(
          {Gep->getPointerOperand(),
           Moved || !(Gep->isInBounds() || Gep->hasAllZeroIndices())});
    else if (const Value *Same = withoutOffset(V))
      Left.push_back({Same, Moved});
    else if (const auto *Phi = dyn_cast<PHINode>(V))
      for (const Value *From : Phi->incoming_values())
        Left.push_back({From, Moved});
    else if (const auto *Choice = dyn_cast<SelectInst>(V))
      for (const Value *From :
           {Choice->getTrueValue(), Choice->getFalseValue()})
        Left.push_back({From, Moved});
    else if (isa<ConstantPointerNull>(V) && Moved)
      return true;
  }
  return false;
}

bool mayLeadElsewhere(const Value *Address, const Place &Where) {
  return Strayer(0, Where).mayStray(Address, ConstantRange::getFull(64));
}

static bool returnsFresh(const Function &F, const FreshFunctions &Fresh) {
  bool Any = false;
  for (const BasicBlock &Block : F) {
    const auto *Return = dyn_cast<ReturnInst>(Block.getTerminator());
    if (!Return)
      continue;
    const Value *Result = Return->getReturnValue();
    if (isa<ConstantPointerNull>(Result))
      continue;
    if (originOf(Result, Fresh, nullptr) != Origin::Fresh ||
        mayStray(Result, 0))
      return false;
    Any = true;
  }
  return Any;
}

void findFreshFunctions(ArrayRef<Function *> Functions, FreshFunctions &Fresh) {
  // The set grows from nothing, so that recursion proves nothing by itself.
  for (bool Grew = true; Grew;) {
    Grew = false;
    for (Function *F : Functions)
      if (F->getReturnType()->isPointerTy() && !Fresh.contains(F) &&
          returnsFresh(*F, Fresh))
        Grew |= Fresh.insert(F).second;
  }
}

} // namespace holdfast
