// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The analysis finds for every instance:
//
// 1. The source of a value: a local's address, a fixed one (function, constant,
//    virtual table), a parameter, memory that a parameter leads to, or nothing of
//    interest. Arithmetic other than a difference keeps the source. Locals that
//    it is stored or copied to keep it, and helpers that return it. A load or
//    copy from a constant that holds addresses yields one, unless its place is
//    known to hold none. The same holds where a pointer leads there, from a
//    constant, a local or a helper's result (LeadStepsMax such steps).
// 2. The place of a store: a local, a parameter's memory, or the pool. The pool is
//    what an entry gets or allocates, and what pointers from there reach.
// 3. A helper's store of a source to a parameter's memory is a fact about the
//    helper, like its store of a parameter. Each call looks at what it passes.
#include "analysis/VolatileAddresses.h"
#include "analysis/AddressSources.h"
#include "analysis/Calls.h"
#include "analysis/ConstantTables.h"
#include "analysis/LocalWrites.h"
#include "analysis/StorePlaces.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Operator.h"

using namespace llvm;

namespace holdfast {

namespace {

/// A smaller load or store has no room for an address.
constexpr uint64_t AddressBytes = 8;

class Finder {
public:
  Finder(const Sections &All, const FreshFunctions &Fresh, SectionReport Report,
         SectionReport Stored)
      : All(All), Report(Report), Stored(Stored),
        RunsAgain(All.Options.Engine->runsAgain()), Places(Fresh) {}

  void run() {
    for (const auto &F : All.Functions)
      Unordered[F->Instance] = F.get();
    for (const auto &F : All.Functions)
      addBehindCalled(*F);
    for (unsigned Round = 0; Round != RoundsMax; ++Round) {
      Changed = false;
      for (SectionFunction *F : Order)
        visit(*F);
      if (!Changed)
        break;
    }
    Reporting = true;
    for (const auto &F : All.Functions)
      visit(*F);
  }

private:
  static constexpr unsigned RoundsMax = 8, FactsMax = 256, LeadsMax = 8,
                            LeadStepsMax = 1000; // of one question
  const Sections &All;
  SectionReport Report, Stored;
  const bool RunsAgain;
  // Helpers first: all their callers learn what is known of them in one round.
  // Recursion takes more rounds.
  DenseMap<const Function *, SectionFunction *> Unordered;
  SmallVector<SectionFunction *, 16> Order;
  DenseMap<const Function *, Summary> Known;
  DenseMap<const Value *, Source> Sources; // of the function visited
  StorePlaces Places;
  // Locals whose contents are being asked for, and what leads to others.
  SmallPtrSet<const Value *, 8> Busy;
  unsigned LeadSteps = 0; // since nothing was being asked for
  DenseMap<const GlobalVariable *, SmallVector<uint64_t, 4>> Tables;
  SectionFunction *Current = nullptr;
  bool Changed = false;
  bool Reporting = false;

  void addBehindCalled(SectionFunction &F) {
    if (!Unordered.erase(F.Instance))
      return;
    for (Instruction &I : instructions(*F.Instance))
      if (const auto *Call = dyn_cast<CallBase>(&I))
        if (SectionFunction *Helper = Unordered.lookup(calledFunction(*Call)))
          addBehindCalled(*Helper);
    Order.push_back(&F);
  }

  void visit(SectionFunction &F) {
    Current = &F;
    Sources.clear();
    Places.begin(F);
    Busy.clear();
    SmallVector<Source, 2> Returned(partsOf(F.Instance->getReturnType()),
                                    {Source::Neutral});
    for (Instruction &I : instructions(*F.Instance)) {
      if (auto *Store = dyn_cast<StoreInst>(&I))
        visitStore(*Store);
      else if (auto *Copy = dyn_cast<MemTransferInst>(&I))
        visitCopy(*Copy, Copy->getRawDest(), Copy->getRawSource(),
                  Copy->getLength());
      else if (auto *Call = dyn_cast<CallBase>(&I))
        visitCall(*Call);
      else if (auto *Return = dyn_cast<ReturnInst>(&I);
               Return && Return->getReturnValue()) {
        noteLeads(*Return->getReturnValue());
        for (unsigned Part = 0; Part != Returned.size(); ++Part)
          Returned[Part] = join(Returned[Part],
                                sourceOfPart(Return->getReturnValue(), Part));
      }
    }
    Summary &Ours = Known[F.Instance];
    Changed |= Ours.Returned != Returned;
    Ours.Returned = std::move(Returned);
  }

  void noteLeads(const Value &Returned) {
    if (!Returned.getType()->isPointerTy() || Current->As == Role::Entry)
      return;
    SmallVector<Lead, 2> &Leads = Known[Current->Instance].Leads;
    findLeads(&Returned, {}, [&](const Value &Object, const Extent &At) {
      const auto *Table = dyn_cast<GlobalVariable>(&Object);
      const auto *A = dyn_cast<Argument>(&Object);
      if (!Table && !A)
        return;
      Lead One{Table, A ? A->getArgNo() : 0, At};
      if (Leads.size() == LeadsMax || is_contained(Leads, One))
        return;
      Leads.push_back(One);
      Changed = true;
    });
  }

  void visitStore(const StoreInst &Store) {
    const Value *Stored = Store.getValueOperand();
    StorePlace To = Places.of(Store.getPointerOperand());
    for (unsigned Part = 0; Part != partsOf(Stored->getType()); ++Part)
      note(To, sourceOfPart(Stored, Part),
           Stored->getType()->isPointerTy() &&
               (RunsAgain || mayStray(Stored, 0)),
           Store.getDebugLoc(), whereOfPart(Store, Part));
    if (To.Is == StorePlace::Pool)
      if (Source At = chosenBy(Store.getPointerOperand());
          At.Is == Source::Local || At.Is == Source::Fixed)
        report("a store to the pool whose place depends on the address of " +
                   nameOf(At) + ", which is another in every process",
               Store.getDebugLoc());
  }

  void visitCopy(const CallBase &Copy, const Value *To, const Value *From,
                 const Value *Bytes) {
    const auto *Length = dyn_cast<ConstantInt>(Bytes);
    if (Length && Length->getZExtValue() < AddressBytes)
      return;
    StorePlace Where = Places.of(To);
    const Extent All{0, 0, Length ? Length->getZExtValue() : 0};
    if (Where.Is == StorePlace::Pool)
      note(Where, contentsAt(From, All, Copy), false, Copy.getDebugLoc());
    else if (Where.Is == StorePlace::Parameter)
      findLeads(From, All, [&](const Value &Object, const Extent &At) {
        Source Of = contentsOf(Object, At, Copy);
        if (const auto *Table = dyn_cast<GlobalVariable>(&Object);
            Table && Of.interesting())
          Of = {Source::Held, 0, Table, At};
        note(Where, Of, false, Copy.getDebugLoc(), whereIn(To, All.Length));
      });
  }

  void visitCall(const CallBase &Call) {
    if (const RangeWriter *Shape = findRangeWriter(Call);
        Shape && Shape->Source >= 0 && Shape->Length >= 0)
      return visitCopy(Call, Call.getArgOperand(Shape->Destination),
                       Call.getArgOperand(Shape->Source),
                       Call.getArgOperand(Shape->Length));
    if (classifyCall(Call).Kind != CallKind::Body)
      return;
    auto Found = Known.find(calledFunction(Call));
    if (Found == Known.end())
      return;
    // note() may move them.
    SmallVector<Fact, 4> Stores = Found->second.Stores;
    for (const auto &[Index, At] : Found->second.Others)
      Stores.push_back({{StorePlace::Parameter, Index}, {}, At});
    for (const Fact &F : Stores) {
      const bool ToOurs =
          F.To.Is == StorePlace::Parameter && F.To.Index < Call.arg_size();
      StorePlace To = ToOurs ? Places.of(Call.getArgOperand(F.To.Index)) : F.To;
      if (To.Is == StorePlace::Pool)
        note(To, passed(F.Of, Call), false, Call.getDebugLoc());
      else if (To.Is == StorePlace::Parameter) // 'To' says which
        note(To, passed(F.Of, Call), false, Call.getDebugLoc(),
             moved(whereIn(Call.getArgOperand(F.To.Index), 0), F.At));
    }
  }

  /// Returns the source here of what is 'S' in the called function.
  Source passed(const Source &S, const CallBase &Call) {
    if (S.Is == Source::Held && S.Which)
      return contentsOf(*S.Which, S.At, Call);
    if (S.Index >= Call.arg_size())
      return S;
    if (S.Is == Source::Parameter)
      return sourceOf(Call.getArgOperand(S.Index));
    if (S.Is == Source::Held)
      return contentsAt(Call.getArgOperand(S.Index), S.At, Call);
    return S;
  }

  /// 'Direct': the address itself, stored here. A local's is known to SectionRules,
  /// or leads elsewhere, as a self-relative pointer does.
  void note(StorePlace To, Source Of, bool Direct, const DebugLoc &Where,
            const Extent &At = {}) {
    if (!Of.interesting() && To.Is == StorePlace::Parameter)
      return noteOther(To.Index, At);
    if (!Of.interesting() || To.Is == StorePlace::Elsewhere ||
        To.Is == StorePlace::Local)
      return;
    bool Certain = Of.Is != Source::Parameter && Of.Is != Source::Held &&
                   To.Is == StorePlace::Pool;
    if (Certain && !(Direct && Of.Is == Source::Local))
      return reportStore(Of, Where);
    if (Certain || Reporting || Current->As == Role::Entry)
      return;
    if (Direct && Of.Is == Source::Local)
      return;
    SmallVector<Fact, 4> &Stores = Known[Current->Instance].Stores;
    if (Stores.size() == FactsMax || is_contained(Stores, Fact{To, Of, At}))
      return;
    Stores.push_back({To, Of, At});
    Changed = true;
  }

  void noteOther(unsigned Index, const Extent &At) {
    if (Current->As == Role::Entry)
      return;
    auto &Others = Known[Current->Instance].Others;
    if (Others.size() == FactsMax || is_contained(Others, std::pair(Index, At)))
      return;
    Others.push_back({Index, At});
    Changed = true;
  }

  void report(const Twine &What, const DebugLoc &Where) {
    if (Reporting)
      Report(*Current, What, Where);
  }

  void reportStore(const Source &S, const DebugLoc &Where) {
    // What a closure leads to may as well be the caller's scratch memory.
    if (!Reporting ||
        (isScratch(S) && Current->ReachedFrom->hasFnAttribute(ClosureAttr)))
      return;
    Stored(*Current, whyStored(S), Where);
  }

  static Extent whereOfPart(const StoreInst &Store, unsigned Part) {
    LocalWrite Its = partOf({&Store, whereIn(Store.getPointerOperand(), 0),
                             Store.getValueOperand()},
                            Part);
    return Its.Where;
  }

  /// The source of an element of a struct, or of any other value as a whole.
  Source sourceOfPart(const Value *V, unsigned Part) {
    const auto *Struct = dyn_cast<StructType>(V->getType());
    if (!Struct)
      return sourceOf(V);
    if (const auto *Insert = dyn_cast<InsertValueInst>(V)) {
      if (Insert->getIndices().front() != Part)
        return sourceOfPart(Insert->getAggregateOperand(), Part);
      return Insert->getNumIndices() == 1
                 ? sourceOf(Insert->getInsertedValueOperand())
                 : Source{};
    }
    if (const auto *Load = dyn_cast<LoadInst>(V)) {
      const DataLayout &Layout = Load->getDataLayout();
      return ofLoaded(*Load, Struct->getElementType(Part),
                      Layout.getStructLayout(const_cast<StructType *>(Struct))
                          ->getElementOffset(Part));
    }
    if (const auto *Call = dyn_cast<CallBase>(V))
      return ofResult(*Call, Part);
    if (const auto *Phi = dyn_cast<PHINode>(V)) {
      Source All{Source::Neutral};
      if (Busy.insert(V).second)
        for (const Value *In : Phi->incoming_values())
          All = join(All, sourceOfPart(In, Part));
      Busy.erase(V);
      return All;
    }
    if (const auto *Select = dyn_cast<SelectInst>(V))
      return join(sourceOfPart(Select->getTrueValue(), Part),
                  sourceOfPart(Select->getFalseValue(), Part));
    if (const auto *C = dyn_cast<Constant>(V))
      if (const Constant *Element = C->getAggregateElement(Part))
        return sourceOf(Element);
    return {};
  }

  /// What is found at 'Address', by the instruction 'Reader'.
  Source contentsAt(const Value *Address, const Extent &At,
                    const Instruction &Reader) {
    Source All{Source::Neutral};
    findLeads(Address, At, [&](const Value &Object, const Extent &Its) {
      if (!isa<ConstantPointerNull>(Object) && !isa<UndefValue>(Object))
        All = join(All, contentsOf(Object, Its, Reader));
    });
    return All.Is == Source::Neutral ? Source{} : All;
  }

  Source contentsOf(const Value &Object, const Extent &At,
                    const Instruction &Reader) {
    if (const auto *Table = dyn_cast<GlobalVariable>(&Object)) {
      if (!neverChanges(*Table))
        return {};
      auto [Its, New] = Tables.try_emplace(Table);
      if (New)
        Its->second = addressesIn(*Table);
      return any_of(Its->second, [&](uint64_t W) { return At.meetsWord(W); })
                 ? Source{Source::Fixed, 0, Table}
                 : Source{};
    }
    if (const auto *A = dyn_cast<Argument>(&Object))
      return A->hasByValAttr() || Current->As == Role::Entry
                 ? Source{}
                 : Source{Source::Held, A->getArgNo(), nullptr, At};
    const auto *Local = dyn_cast<AllocaInst>(&Object);
    if (!Local || !Busy.insert(Local).second)
      return {};
    SmallVector<LocalWrite, 8> Writes;
    Source All{Source::Neutral};
    if (collectWrites(*Local, Writes))
      forEachWord(At, [&](const Extent &Word) {
        SmallVector<LocalWrite, 8> Over;
        copy_if(Writes, std::back_inserter(Over), [&](const LocalWrite &W) {
          return !W.isCall() || mayStore(W, Word);
        });
        for (const LocalWrite &W : Writes)
          if (W.mayMeet(Word))
            if (Source S = writtenBy(W, Word);
                S.interesting() && isFound(W, Word, Reader, Over))
              All = join(All, S);
      });
    Busy.erase(Local);
    return All;
  }

  using Visitor = function_ref<void(const Value &, const Extent &)>;

  /// As findObjects, also through what helpers return, and through pointers that
  /// constants and locals hold.
  void findLeads(const Value *Address, const Extent &At, Visitor Visit) {
    LeadSteps = Busy.empty() ? 1 : LeadSteps + 1;
    if (LeadSteps > LeadStepsMax)
      return;
    findObjects(Address, At, [&](const Value &Object, const Extent &Its) {
      const auto *Call = dyn_cast<CallBase>(&Object);
      const auto *Load = dyn_cast<LoadInst>(&Object);
      if (!Call && !Load)
        return Visit(Object, Its);
      if (!Busy.insert(&Object).second)
        return;
      if (Call)
        followReturned(*Call, Its, Visit);
      else
        followHeld(Load->getPointerOperand(), {0, 0, AddressBytes}, Its, Visit);
      Busy.erase(&Object);
    });
  }

  void followReturned(const CallBase &Call, const Extent &At, Visitor Visit) {
    auto Its = Known.find(calledFunction(Call));
    if (Its == Known.end())
      return;
    for (const Lead &L : SmallVector<Lead, 2>(Its->second.Leads))
      if (L.Table)
        Visit(*L.Table, moved(L.At, At));
      else if (L.Index < Call.arg_size())
        findLeads(Call.getArgOperand(L.Index), moved(L.At, At), Visit);
  }

  /// To where the pointers lead that 'Where' of what 'Holder' points to holds.
  void followHeld(const Value *Holder, const Extent &Where, const Extent &At,
                  Visitor Visit) {
    findLeads(Holder, Where, [&](const Value &Object, const Extent &Its) {
      if (const auto *Table = dyn_cast<GlobalVariable>(&Object)) {
        if (!neverChanges(*Table))
          return;
        for (uint64_t Word : addressesIn(*Table))
          if (Its.meetsWord(Word))
            if (const Constant *Held = ConstantFoldLoadFromConst(
                    const_cast<Constant *>(Table->getInitializer()),
                    PointerType::getUnqual(Table->getContext()),
                    APInt(64, Word), Table->getDataLayout()))
              findLeads(Held, At, Visit);
        return;
      }
      const auto *Local = dyn_cast<AllocaInst>(&Object);
      SmallVector<LocalWrite, 8> Writes;
      if (!Local || !collectWrites(*Local, Writes) ||
          !Busy.insert(Local).second)
        return;
      for (const LocalWrite &W : Writes)
        if (W.mayMeet(Its)) {
          if (W.Source)
            followHeld(W.Source, partRead(W.Where, Its), At, Visit);
          else if (W.Stored && W.Stored->getType()->isPointerTy())
            findLeads(W.Stored, At, Visit);
        }
      Busy.erase(Local);
    });
  }

  /// The source of the part of a write that 'Read' meets.
  Source writtenBy(const LocalWrite &W, const Extent &Read) {
    if (W.Source)
      return contentsAt(W.Source, partRead(W.Where, Read), *W.At);
    Source All{Source::Neutral};
    if (W.Stored) {
      for (unsigned Part = 0; Part != partsOf(W.Stored->getType()); ++Part)
        if (LocalWrite Its = partOf(W, Part); Its.mayMeet(Read))
          All = join(All, sourceOfPart(W.Stored, Part));
    } else if (W.isCall()) {
      const auto &Call = cast<CallBase>(*W.At);
      if (auto Its = Known.find(calledFunction(Call)); Its != Known.end())
        for (const Fact &F : SmallVector<Fact, 4>(Its->second.Stores))
          if (F.To.Is == StorePlace::Parameter && int(F.To.Index) == W.Argument)
            All = join(All, storedBy(F, Call, moved(W.Where, F.At), Read));
    }
    return All;
  }

  /// Whether a call may store something to these bytes of a local.
  bool mayStore(const LocalWrite &W, const Extent &Bytes) {
    const auto &Call = cast<CallBase>(*W.At);
    auto Its = Known.find(calledFunction(Call));
    if (Its == Known.end())
      return true;
    auto Meets = [&](unsigned Index, const Extent &At) {
      return int(Index) == W.Argument &&
             LocalWrite{&Call, moved(W.Where, At)}.mayMeet(Bytes);
    };
    return any_of(Its->second.Stores,
                  [&](const Fact &F) {
                    return F.To.Is == StorePlace::Parameter &&
                           Meets(F.To.Index, F.At);
                  }) ||
           any_of(Its->second.Others,
                  [&](const auto &O) { return Meets(O.first, O.second); });
  }

  /// By a call, to bytes 'Where' of a local.
  Source storedBy(const Fact &F, const CallBase &Call, const Extent &Where,
                  const Extent &Read) {
    if (!LocalWrite{&Call, Where}.mayMeet(Read))
      return {};
    Source Of = F.Of;
    if (Of.Is == Source::Held && F.At.isOnePlace() && Where.isOnePlace())
      Of.At = moved(Of.At, partRead(Where, Read));
    return passed(Of, Call);
  }

  static LocalWrite partOf(LocalWrite W, unsigned Part) {
    const DataLayout &Layout = W.At->getDataLayout();
    Type *T = W.Stored->getType();
    if (auto *Struct = dyn_cast<StructType>(T)) {
      W.Where.Offset += Layout.getStructLayout(Struct)->getElementOffset(Part);
      T = Struct->getElementType(Part);
    }
    W.Where.Length = Layout.getTypeStoreSize(T).getKnownMinValue();
    return W;
  }

  Source sourceOf(const Value *V) {
    auto [Its, New] = Sources.try_emplace(V, Source{Source::Neutral});
    if (!New)
      return Its->second; // a loop adds nothing
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
      return ofLoaded(*Load, Load->getType(), 0);
    if (const auto *Extract = dyn_cast<ExtractValueInst>(V))
      return Extract->getNumIndices() == 1
                 ? sourceOfPart(Extract->getAggregateOperand(),
                                Extract->getIndices().front())
                 : Source{};
    if (isa<ExtractElementInst>(V))
      return sourceOf(cast<Instruction>(V)->getOperand(0));
    if (isa<InsertElementInst, ShuffleVectorInst>(V))
      return join(sourceOf(cast<Instruction>(V)->getOperand(0)),
                  sourceOf(cast<Instruction>(V)->getOperand(1)));
    if (const auto *Call = dyn_cast<CallBase>(V))
      return ofCall(*Call);
    return {};
  }

  Source ofArithmetic(const BinaryOperator &I) {
    const Value *Left = I.getOperand(0), *Right = I.getOperand(1);
    const auto *By = dyn_cast<ConstantInt>(Right);
    if (I.getOpcode() == Instruction::Sub)
      return By ? sourceOf(Left) : Source{};
    if (By && I.getOpcode() == Instruction::Xor && By->isMinusOne())
      return {};
    if (By && leavesAlignment(I.getOpcode(), By->getValue()))
      return {};
    Source L = sourceOf(Left), R = sourceOf(Right);
    if (!R.interesting())
      return L.interesting() ? L : Source{};
    if (!L.interesting())
      return R;
    return I.getOpcode() == Instruction::Add ? Source{} : L;
  }

  /// The source of a 'T', at 'Offset' in the bytes that are loaded.
  Source ofLoaded(const LoadInst &Load, const Type *T, uint64_t Offset) {
    uint64_t Bytes = Load.getDataLayout()
                         .getTypeStoreSize(const_cast<Type *>(T))
                         .getKnownMinValue();
    if (Bytes < AddressBytes || T->isFPOrFPVectorTy())
      return {};
    return contentsAt(Load.getPointerOperand(), {int64_t(Offset), 0, Bytes},
                      Load);
  }

  Source ofCall(const CallBase &Call) {
    if (const auto *Intrinsic = dyn_cast<IntrinsicInst>(&Call))
      return is_contained({Intrinsic::fshl, Intrinsic::fshr, Intrinsic::bswap,
                           Intrinsic::bitreverse, Intrinsic::ctpop,
                           Intrinsic::threadlocal_address},
                          Intrinsic->getIntrinsicID())
                 ? sourceOf(Call.getArgOperand(0))
                 : Source{};
    if (isErrno(Call) || takesScratch(Call))
      return {Source::Fixed, 0, calledFunction(Call)};
    return ofResult(Call, 0);
  }

  Source ofResult(const CallBase &Call, unsigned Part) {
    auto Found = Known.find(calledFunction(Call));
    if (Found == Known.end() || classifyCall(Call).Kind != CallKind::Body ||
        Part >= Found->second.Returned.size())
      return {};
    Source S = Found->second.Returned[Part];
    return S.Is == Source::Neutral ? Source{} : passed(S, Call);
  }

  /// Returns the source of a number that chooses the place of a store.
  Source chosenBy(const Value *Address) {
    while (const auto *Gep = dyn_cast<GetElementPtrInst>(Address)) {
      for (const Value *Index : Gep->indices())
        if (Source S = sourceOf(Index); S.interesting())
          return S;
      Address = Gep->getPointerOperand();
    }
    return {};
  }
};

} // namespace

void findVolatileAddresses(const Sections &All, const FreshFunctions &Fresh,
                           SectionReport Report, SectionReport Stored) {
  Finder(All, Fresh, Report, Stored).run();
}

} // namespace holdfast
