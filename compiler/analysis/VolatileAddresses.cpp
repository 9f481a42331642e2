// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analysis finds for every instance:
//
// 1. The source of a value: a local's address, a fixed one (function, constant,
//    virtual table), a parameter, or nothing of interest. Arithmetic keeps it,
//    but for differences; so do unoptimised code's spills, and helpers that
//    return it.
// 2. The place of a store: a local, a parameter's memory, or the pool. What an
//    entry is given, or allocates, or what is reached through pointers from
//    there, is the pool.
// 3. A store of a source to a parameter's memory, or of a parameter, is a fact
//    about the helper: it is looked at again with what each call passes.
#include "analysis/VolatileAddresses.h"
#include "analysis/Calls.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace holdfast {

namespace {

struct Source {
  enum Kind { Nothing, Neutral, Local, Fixed, Parameter } Is = Nothing;
  unsigned Index = 0;                 ///< of a parameter
  const GlobalValue *Which = nullptr; ///< of a fixed address
  bool interesting() const { return Is > Neutral; }
  bool operator==(const Source &) const = default;
};

struct Place {
  enum Kind { Elsewhere, Local, Pool, Parameter } Is = Elsewhere;
  unsigned Index = 0;
  bool operator==(const Place &) const = default;
};

/// A store that a helper makes.
struct Fact {
  Place To;
  Source Of;
  bool operator==(const Fact &) const = default;
};

struct Summary {
  Source Returned;
  SmallVector<Fact, 4> Stores;
};

/// A slot of unoptimised code: what is stored there, if nobody else can store.
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

bool holdsAddress(const Constant *C) {
  if (isa<GlobalValue>(C) || isa<BlockAddress>(C))
    return true;
  return any_of(C->operand_values(), [](const Value *Part) {
    return holdsAddress(cast<Constant>(Part));
  });
}

class Finder {
public:
  Finder(const Sections &All, const FreshFunctions &Fresh, SectionReport Report)
      : All(All), Fresh(Fresh), Report(Report) {}

  void run() {
    for (unsigned Round = 0; Round != RoundsMax; ++Round) {
      Changed = false;
      for (const auto &F : All.Functions)
        visit(*F);
      if (!Changed)
        break;
    }
    Reporting = true;
    for (const auto &F : All.Functions)
      visit(*F);
  }

private:
  static constexpr unsigned RoundsMax = 8, FactsMax = 64;
  const Sections &All;
  const FreshFunctions &Fresh;
  SectionReport Report;
  DenseMap<const Function *, Summary> Known;
  DenseMap<const Value *, Source> Sources; // of the function visited
  // The same, by what was followed to get there: a walk in a loop has ways
  // without number to one object.
  DenseMap<std::pair<const Value *, unsigned>, Place> Places;
  SectionFunction *Current = nullptr;
  bool Changed = false;
  bool Reporting = false;

  void visit(SectionFunction &F) {
    Current = &F;
    Sources.clear();
    Places.clear();
    Source Returned{Source::Neutral};
    for (Instruction &I : instructions(*F.Instance)) {
      if (auto *Store = dyn_cast<StoreInst>(&I))
        visitStore(*Store);
      else if (auto *Copy = dyn_cast<MemTransferInst>(&I))
        visitCopy(*Copy);
      else if (auto *Call = dyn_cast<CallBase>(&I))
        visitCall(*Call);
      else if (auto *Return = dyn_cast<ReturnInst>(&I);
               Return && Return->getReturnValue())
        Returned = join(Returned, sourceOf(Return->getReturnValue()));
    }
    Summary &Ours = Known[F.Instance];
    Changed |= Ours.Returned != Returned;
    Ours.Returned = Returned;
  }

  void visitStore(const StoreInst &Store) {
    const Value *Stored = Store.getValueOperand();
    Place To = placeOf(Store.getPointerOperand());
    if (Stored->getType()->isPointerTy() || Stored->getType()->isIntegerTy())
      note(To, sourceOf(Stored), Stored->getType()->isPointerTy(),
           Store.getDebugLoc());
    if (To.Is == Place::Pool)
      if (Source At = chosenBy(Store.getPointerOperand());
          At.Is == Source::Local || At.Is == Source::Fixed)
        report("a store to the pool whose place depends on the address of " +
                   nameOf(At) + ", which is another in every process",
               Store.getDebugLoc());
  }

  /// A copy of a constant, or of a local filled field by field.
  void visitCopy(const MemTransferInst &Copy) {
    if (placeOf(Copy.getRawDest()).Is != Place::Pool)
      return;
    const DataLayout &Layout = Copy.getDataLayout();
    const auto *Length = dyn_cast<ConstantInt>(Copy.getLength());
    APInt From(Layout.getIndexTypeSizeInBits(Copy.getRawSource()->getType()),
               0);
    const Value *Object =
        Copy.getRawSource()->stripAndAccumulateConstantOffsets(Layout, From,
                                                               true);
    if (const auto *Global = dyn_cast<GlobalVariable>(Object)) {
      if (Global->isConstant() && Global->hasDefinitiveInitializer() &&
          holdsAddress(Global->getInitializer()))
        reportStore(Source{Source::Fixed, 0, Global}, Copy.getDebugLoc());
      return;
    }
    if (!isa<AllocaInst>(Object) || !Length)
      return;
    SmallVector<std::pair<int64_t, const Value *>, 8> Fields;
    if (!collectFields(*Object, 0, Fields))
      return;
    for (const auto &[Offset, Stored] : Fields)
      if (Offset >= From.getSExtValue() &&
          Offset < From.getSExtValue() + int64_t(Length->getZExtValue()) &&
          count_if(
              Fields, [&](const auto &F) { return F.first == Offset; }) == 1)
        if (Source S = sourceOf(Stored);
            S.Is == Source::Local || S.Is == Source::Fixed)
          reportStore(S, Copy.getDebugLoc());
  }

  /// Collects the pointers stored to a local, by offset; returns false when
  /// there may be others.
  static bool
  collectFields(const Value &At, int64_t Offset,
                SmallVectorImpl<std::pair<int64_t, const Value *>> &Fields) {
    for (const Use &U : At.uses()) {
      const User *By = U.getUser();
      if (const auto *Gep = dyn_cast<GEPOperator>(By)) {
        const DataLayout &Layout =
            cast<Instruction>(By)->getFunction()->getDataLayout();
        APInt Step(Layout.getIndexTypeSizeInBits(Gep->getType()), 0);
        if (!Gep->accumulateConstantOffset(Layout, Step) ||
            !collectFields(*Gep, Offset + Step.getSExtValue(), Fields))
          return false;
      } else if (const auto *Store = dyn_cast<StoreInst>(By)) {
        if (U.getOperandNo() == 0)
          return false;
        if (Store->getValueOperand()->getType()->isPointerTy())
          Fields.push_back({Offset, Store->getValueOperand()});
      } else if (const auto *Copy = dyn_cast<MemTransferInst>(By)) {
        if (&U == &Copy->getRawDestUse())
          return false;
      } else if (!isa<LoadInst>(By) && !isa<MemSetInst>(By) &&
                 !isa<LifetimeIntrinsic>(By) && !isa<DbgInfoIntrinsic>(By)) {
        return false;
      }
    }
    return true;
  }

  void visitCall(const CallBase &Call) {
    if (classifyCall(Call).Kind != CallKind::Body)
      return;
    auto Found = Known.find(calledFunction(Call));
    if (Found == Known.end())
      return;
    SmallVector<Fact, 4> Stores = Found->second.Stores; // note() may move it
    for (const Fact &F : Stores) {
      Place To = F.To.Is == Place::Parameter && F.To.Index < Call.arg_size()
                     ? placeOf(Call.getArgOperand(F.To.Index))
                     : F.To;
      Source Of = F.Of.Is == Source::Parameter && F.Of.Index < Call.arg_size()
                      ? sourceOf(Call.getArgOperand(F.Of.Index))
                      : F.Of;
      note(To, Of, false, Call.getDebugLoc());
    }
  }

  /// 'Direct': the address itself, stored here; SectionRules knows those of
  /// locals.
  void note(Place To, Source Of, bool Direct, const DebugLoc &Where) {
    if (!Of.interesting() || To.Is == Place::Elsewhere || To.Is == Place::Local)
      return;
    bool Certain = Of.Is != Source::Parameter && To.Is == Place::Pool;
    if (Certain && !(Direct && Of.Is == Source::Local))
      return reportStore(Of, Where);
    if (Certain || Reporting || Current->As == Role::Entry)
      return;
    if (Direct && Of.Is == Source::Local)
      return;
    SmallVector<Fact, 4> &Stores = Known[Current->Instance].Stores;
    if (Stores.size() == FactsMax || is_contained(Stores, Fact{To, Of}))
      return;
    Stores.push_back({To, Of});
    Changed = true;
  }

  void report(const Twine &What, const DebugLoc &Where) {
    if (Reporting)
      Report(*Current, What, Where);
  }

  static std::string nameOf(const Source &S) {
    if (S.Is == Source::Local)
      return "a local variable";
    std::string Name = demangle(S.Which->getName().str());
    if (Name == "__errno_location") // what it returns: ofCall
      return "errno";
    if (isa<Function>(S.Which))
      return "function '" + Name + "'";
    if (S.Which->isThreadLocal())
      return "thread-local variable '" + Name + "'";
    if (const auto *Variable = dyn_cast<GlobalVariable>(S.Which);
        Variable && !Variable->isConstant())
      return "global variable '" + Name + "'";
    return S.Which->hasPrivateLinkage() ? "a literal or constant"
                                        : "constant '" + Name + "'";
  }

  void reportStore(const Source &S, const DebugLoc &Where) {
    if (S.Which && (S.Which->getName().starts_with("_ZTV") ||
                    S.Which->getName().starts_with("_ZTT") ||
                    S.Which->getName().starts_with("_ZTC")))
      return report("address of a virtual table is stored to the pool: it is "
                    "another in every process; keep alternatives in a "
                    "std::variant",
                    Where);
    report("address of " + nameOf(S) +
               ", or a number made of it, is stored to the pool: it is another "
               "in every process; store contents, or an index",
           Where);
  }

  static Source join(const Source &A, const Source &B) {
    if (A.Is == Source::Neutral)
      return B;
    if (B.Is == Source::Neutral || A == B)
      return A;
    if (A.Is == Source::Fixed && B.Is == Source::Fixed)
      return A;
    return {};
  }

  Source sourceOf(const Value *V) {
    auto [Place, New] = Sources.try_emplace(V, Source{Source::Neutral});
    if (!New)
      return Place->second; // a loop adds nothing
    Source S = compute(V);
    Sources[V] = S;
    return S;
  }

  Source compute(const Value *V) {
    if (const auto *C = dyn_cast<Constant>(V))
      return ofConstant(C);
    if (isa<AllocaInst>(V))
      return {Source::Local};
    if (const auto *A = dyn_cast<Argument>(V)) {
      if (A->hasByValAttr())
        return {Source::Local};
      if (Current->As == Role::Entry)
        return {};
      return {Source::Parameter, A->getArgNo()};
    }
    if (const auto *Phi = dyn_cast<PHINode>(V)) {
      Source All{Source::Neutral};
      for (const Value *In : Phi->incoming_values())
        All = join(All, sourceOf(In));
      return All;
    }
    if (const auto *Select = dyn_cast<SelectInst>(V))
      return join(sourceOf(Select->getTrueValue()),
                  sourceOf(Select->getFalseValue()));
    if (isa<GetElementPtrInst>(V) || isa<CastInst>(V) || isa<FreezeInst>(V))
      return sourceOf(cast<Instruction>(V)->getOperand(0));
    if (const auto *Binary = dyn_cast<BinaryOperator>(V))
      return ofArithmetic(*Binary);
    if (const auto *Load = dyn_cast<LoadInst>(V))
      return ofLoad(*Load);
    if (const auto *Call = dyn_cast<CallBase>(V))
      return ofCall(*Call);
    return {};
  }

  static Source ofConstant(const Constant *C) {
    if (const auto *Global = dyn_cast<GlobalValue>(C->stripPointerCasts()))
      return {Source::Fixed, 0, Global};
    if (isa<ConstantData>(C))
      return {Source::Neutral};
    const auto *Expression = dyn_cast<ConstantExpr>(C);
    if (!Expression)
      return {};
    // Differences, such as offsets in tables, are no addresses.
    if (Expression->getOpcode() == Instruction::GetElementPtr ||
        Expression->isCast())
      return ofConstant(Expression->getOperand(0));
    return {};
  }

  Source ofArithmetic(const BinaryOperator &I) {
    const Value *Left = I.getOperand(0), *Right = I.getOperand(1);
    bool ByConstant = isa<ConstantInt>(Right);
    if (I.getOpcode() == Instruction::Sub ||
        (I.getOpcode() == Instruction::Xor && ByConstant &&
         cast<ConstantInt>(Right)->isMinusOne()))
      return ByConstant && I.getOpcode() == Instruction::Sub ? sourceOf(Left)
                                                             : Source{};
    Source L = sourceOf(Left), R = sourceOf(Right);
    if (!R.interesting())
      return L.interesting() ? L : Source{};
    if (!L.interesting())
      return R;
    return I.getOpcode() == Instruction::Add ? Source{} : L;
  }

  Source ofLoad(const LoadInst &Load) {
    const Value *At = Load.getPointerOperand();
    if (const auto *Slot = dyn_cast<AllocaInst>(At)) {
      SmallVector<const Value *, 2> Stored;
      Source All{Source::Neutral};
      if (!collectSpilled(*Slot, Stored))
        return {};
      for (const Value *V : Stored)
        All = join(All, sourceOf(V));
      return All;
    }
    const auto *Table =
        dyn_cast<GlobalVariable>(getUnderlyingObject(At, /*MaxLookup=*/0));
    if (Load.getType()->isPointerTy() && Table && Table->isConstant() &&
        Table->hasDefinitiveInitializer() &&
        holdsAddress(Table->getInitializer()))
      return {Source::Fixed, 0, Table};
    return {};
  }

  Source ofCall(const CallBase &Call) {
    if (const auto *Intrinsic = dyn_cast<IntrinsicInst>(&Call))
      return is_contained({Intrinsic::fshl, Intrinsic::fshr, Intrinsic::bswap,
                           Intrinsic::bitreverse, Intrinsic::ctpop,
                           Intrinsic::threadlocal_address},
                          Intrinsic->getIntrinsicID())
                 ? sourceOf(Call.getArgOperand(0))
                 : Source{};
    if (isErrno(Call))
      return {Source::Fixed, 0, calledFunction(Call)};
    auto Found = Known.find(calledFunction(Call));
    if (Found == Known.end() || classifyCall(Call).Kind != CallKind::Body)
      return {};
    Source S = Found->second.Returned;
    if (S.Is == Source::Neutral)
      return {};
    return S.Is == Source::Parameter && S.Index < Call.arg_size()
               ? sourceOf(Call.getArgOperand(S.Index))
               : S;
  }

  /// What a number chooses the place of a store among.
  Source chosenBy(const Value *Address) {
    while (const auto *Gep = dyn_cast<GetElementPtrInst>(Address)) {
      for (const Value *Index : Gep->indices())
        if (Source S = sourceOf(Index); S.interesting())
          return S;
      Address = Gep->getPointerOperand();
    }
    return {};
  }

  Place placeOf(const Value *Address, unsigned Depth = 0) {
    SmallVector<const Value *, 4> Objects;
    getUnderlyingObjects(Address, Objects, nullptr, /*MaxLookup=*/0);
    std::optional<Place> Common;
    for (const Value *Object : Objects) {
      if (isa<ConstantPointerNull>(Object) || isa<UndefValue>(Object))
        continue;
      auto Seen = Places.find({Object, Depth});
      Place One =
          Seen != Places.end() ? Seen->second : placeOfObject(Object, Depth);
      Places[{Object, Depth}] = One;
      if (Common && *Common != One)
        return {};
      Common = One;
    }
    return Common.value_or(Place{});
  }

  Place placeOfObject(const Value *Object, unsigned Depth) {
    if (isa<AllocaInst>(Object))
      return {Place::Local};
    if (const auto *A = dyn_cast<Argument>(Object)) {
      if (A->hasByValAttr() ||
          (Current->As == Role::Entry && A->hasStructRetAttr()))
        return {Place::Local};
      if (Current->As == Role::Entry)
        return {Place::Pool};
      return {Place::Parameter, A->getArgNo()};
    }
    if (const auto *Call = dyn_cast<CallBase>(Object))
      return classifyCall(*Call).Kind == CallKind::Alloc ||
                     Fresh.contains(calledFunction(*Call))
                 ? Place{Place::Pool}
                 : Place{};
    const auto *Load = dyn_cast<LoadInst>(Object);
    if (!Load || Depth == 8)
      return {};
    return placeOfLoaded(*Load, Depth + 1);
  }

  Place placeOfLoaded(const LoadInst &Load, unsigned Depth) {
    const Value *At = Load.getPointerOperand();
    if (const auto *Slot = dyn_cast<AllocaInst>(At)) {
      SmallVector<const Value *, 2> Stored;
      if (!collectSpilled(*Slot, Stored) || Stored.size() != 1)
        return {};
      return placeOf(Stored.front(), Depth);
    }
    Place Holder = placeOf(At, Depth);
    // A pool holds pointers into itself; so does what is passed by value.
    const auto *Closure =
        dyn_cast<Argument>(getUnderlyingObject(At, /*MaxLookup=*/0));
    if (Holder.Is == Place::Pool ||
        (Closure && Closure->hasByValAttr() && Current->As == Role::Entry))
      return {Place::Pool};
    return {};
  }
};

} // namespace

void findVolatileAddresses(const Sections &All, const FreshFunctions &Fresh,
                           SectionReport Report) {
  Finder(All, Fresh, Report).run();
}

} // namespace holdfast
