// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Insertion:
//
// 1. A write to be logged gets the engine's hf_NAME_log, with its address and
//    length, before it.
// 2. Any other write gets the engine's hf_NAME_note. Notes of neighbouring stores of one
//    block to one base become one note at the first of them, when nothing but
//    loads, arithmetic and stores of the same group lies between: no call of
//    the runtime may come between a note and its stores, since it may already
//    write back the noted lines.
// 3. An entry that is made ahead of its write gets hf_log_ahead, behind a copy of
//    the instructions that compute its address.
#include "transform/InsertCalls.h"
#include "analysis/LLVMVersions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Statistic.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumNotes, "Notes inserted");
STATISTIC(NumNotesMerged, "Stores whose note was merged into an earlier one");

namespace holdfast {

namespace {

/// Neighbouring stores under one note. In fresh memory there may be gaps between
/// them. The note's two ends are stored to, so if they lie within one line's
/// length, it touches only lines that the stores touch. Elsewhere gaps are not
/// allowed: the runtime keeps the old bytes of a note, and those in a gap may be
/// another section's.
struct NoteGroup {
  static constexpr int64_t SpanBytes = 64;

  const Write *First = nullptr;
  Range Hull;
  bool NeedsEntry = false;

  bool accepts(const Write &W) const {
    const Range &R = W.Where;
    if (!First || R.Base != Hull.Base || !R.Bytes || !Hull.Bytes)
      return false;
    if (R.Offset <= end(Hull) && Hull.Offset <= end(R))
      return true;
    int64_t Begin = std::min(Hull.Offset, R.Offset);
    int64_t End = std::max(end(Hull), end(R));
    return End - Begin <= SpanBytes && First->From == Origin::Fresh &&
           W.From == Origin::Fresh;
  }
  void add(const Range &R) {
    int64_t End = std::max(end(Hull), end(R));
    Hull.Offset = std::min(Hull.Offset, R.Offset);
    Hull.Bytes = End - Hull.Offset;
  }
  static int64_t end(const Range &R) { return R.Offset + int64_t(R.Bytes); }
};

class Inserter {
public:
  Inserter(Function &F, const EngineInfo &Engine)
      : M(*F.getParent()), LogName(Engine.callee("log")),
        NoteName(Engine.callee("note")) {}

  void run(Function &F, ArrayRef<LoggedWrite> Writes,
           ArrayRef<LogAhead> Ahead) {
    DenseMap<const Instruction *, const LoggedWrite *> At;
    for (const LoggedWrite &W : Writes)
      At[W.Site.At] = &W;
    DenseMap<const Instruction *, SmallVector<const LogAhead *, 2>> Before;
    for (const LogAhead &Entry : Ahead)
      Before[Entry.Before].push_back(&Entry);
    for (BasicBlock &Block : F) {
      for (Instruction &I : make_early_inc_range(Block)) {
        if (auto Its = Before.find(&I); Its != Before.end())
          logAhead(I, Its->second);
        visit(I, At.lookup(&I));
      }
      flush();
    }
  }

private:
  Module &M;
  std::string LogName, NoteName;
  NoteGroup Group;

  void visit(Instruction &I, const LoggedWrite *W) {
    if (!W) {
      // Calls may reach the runtime; intrinsics do not.
      if (isa<CallBase>(I) && !isa<IntrinsicInst>(I))
        flush();
      return;
    }
    if (W->Log) {
      flush();
      insert(LogName, I, W->Site.Address, length(*W));
      return;
    }
    ++NumNotes;
    if (Group.accepts(W->Site)) {
      ++NumNotesMerged;
      Group.add(W->Site.Where);
      Group.NeedsEntry |= needsEntry(*W);
      return;
    }
    flush();
    if (W->Site.Where.Bytes) {
      Group = {&W->Site, W->Site.Where, needsEntry(*W)};
      return;
    }
    note(I, W->Site.Address, length(*W), needsEntry(*W));
  }

  /// Whether old bytes of a write that is not logged are nowhere else.
  static bool needsEntry(const LoggedWrite &W) {
    return W.Why == Verdict::NoInput;
  }

  void logAhead(Instruction &Before, ArrayRef<const LogAhead *> Entries) {
    flush();
    IRBuilder<> Builder(&Before);
    ValueToValueMapTy Copies;
    for (const LogAhead *Entry : Entries) {
      for (Instruction *Step : Entry->Base.Steps) {
        if (Copies.count(Step))
          continue;
        Instruction *Copy = Builder.Insert(Step->clone(), Step->getName());
        RemapInstruction(Copy, Copies,
                         RF_IgnoreMissingLocals | RF_NoModuleLevelChanges);
        Copies[Step] = Copy;
      }
      Value *Address = Entry->Base.Result;
      if (Value *Copy = Copies.lookup(Address))
        Address = Copy;
      if (Entry->Offset)
        Address =
            Builder.CreatePtrAdd(Address, Builder.getInt64(Entry->Offset));
      insert(LogAheadName, Before, Address,
             Entry->Length ? Entry->Length : Builder.getInt64(Entry->Bytes));
    }
  }

  void flush() {
    if (!Group.First)
      return;
    Instruction &At = *Group.First->At;
    IRBuilder<> Builder(&At);
    Value *Address = Group.First->Address;
    if (Group.Hull.Offset != Group.First->Where.Offset)
      Address = Builder.CreatePtrAdd(Group.Hull.Base,
                                     Builder.getInt64(Group.Hull.Offset));
    note(At, Address, Builder.getInt64(Group.Hull.Bytes), Group.NeedsEntry);
    Group = {};
  }

  void note(Instruction &Before, Value *Address, Value *Bytes,
            bool NeedsEntry) {
    CallInst *Call = insert(NoteName, Before, Address, Bytes);
    if (!NeedsEntry)
      Call->setMetadata(NoEntryName, MDNode::get(M.getContext(), {}));
  }

  Value *length(const LoggedWrite &W) {
    IRBuilder<> Builder(W.Site.At);
    if (W.Site.LengthIsString) {
      FunctionCallee Strlen = M.getOrInsertFunction(
          "strlen", Builder.getInt64Ty(), Builder.getPtrTy());
      Value *Source = cast<CallBase>(W.Site.At)->getArgOperand(W.Site.Source);
      return Builder.CreateAdd(Builder.CreateCall(Strlen, Source),
                               Builder.getInt64(1));
    }
    if (W.Site.Where.Bytes)
      return Builder.getInt64(W.Site.Where.Bytes);
    return Builder.CreateZExtOrTrunc(W.Site.Where.Length, Builder.getInt64Ty());
  }

  CallInst *insert(StringRef Name, Instruction &Before, Value *Address,
                   Value *Bytes) {
    IRBuilder<> Builder(&Before);
    FunctionCallee Callee = M.getOrInsertFunction(
        Name,
        FunctionType::get(Builder.getVoidTy(),
                          {Builder.getPtrTy(), Builder.getInt64Ty()}, false));
    CallInst *Call = Builder.CreateCall(Callee, {Address, Bytes});
    Call->setDoesNotThrow();
    return Call;
  }
};

} // namespace

void insertCalls(Function &F, ArrayRef<LoggedWrite> Writes,
                 ArrayRef<LogAhead> Ahead, const EngineInfo &Engine) {
  Inserter(F, Engine).run(F, Writes, Ahead);
}

static const Attribute::AttrKind FunctionPromises[] = {
    Attribute::Memory,       Attribute::NoSync,      Attribute::NoFree,
    Attribute::WillReturn,   Attribute::NoCallback,  Attribute::NoRecurse,
    Attribute::Speculatable, Attribute::MustProgress};
static const Attribute::AttrKind ParameterPromises[] = {
    Attribute::ReadOnly,   Attribute::ReadNone, Attribute::WriteOnly,
    NoCaptureKind,         Attribute::NoFree,   Attribute::Returned,
    Attribute::Initializes};

template <class FunctionOrCall> static void drop(FunctionOrCall &Promises) {
  for (Attribute::AttrKind Kind : FunctionPromises)
    Promises.removeFnAttr(Kind);
  for (unsigned I = 0; I != Promises.arg_size(); ++I)
    for (Attribute::AttrKind Kind : ParameterPromises)
      Promises.removeParamAttr(I, Kind);
}

void announceAccess(IRBuilderBase &Builder, StringRef Access, Value *Address,
                    Value *Bytes) {
  Function &F = *Builder.GetInsertBlock()->getParent();
  if (!F.hasFnAttribute(Attribute::SanitizeThread))
    return;
  FunctionCallee Announce = F.getParent()->getOrInsertFunction(
      ("__tsan_" + Access + "_range").str(), Builder.getVoidTy(),
      Builder.getPtrTy(), Builder.getInt64Ty());
  Builder
      .CreateCall(Announce, {Address, Builder.CreateZExtOrTrunc(
                                          Bytes, Builder.getInt64Ty())})
      ->setDoesNotThrow();
}

void dropPromises(Function &F) { drop(F); }
void dropPromises(CallBase &Call) { drop(Call); }

void dropMemoryPromises(Function &F) {
  dropPromises(F);
  for (Instruction &I : instructions(F))
    if (auto *Call = dyn_cast<CallBase>(&I); Call && !isa<IntrinsicInst>(Call))
      dropPromises(*Call);
}

} // namespace holdfast
