// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function that resumes (holdfast/abi/justdo_abi.h says what the runtime does):
//
// 1. Its frame holds its locals, as far as they stay in memory; a slot for every
//    register that is needed behind a step; and two snapshots of those that a step's
//    section may set again before the next one (ResumePoints.cpp).
// 2. It enters its frame first. If it is resumed it loads what it needs from
//    there and goes on behind the step that the runtime names.
// 3. Before each step it writes what is needed behind it, doubled registers to
//    the snapshot that does not count yet, and notes that. The step, a call of the runtime,
//    makes that snapshot count by the point's number. StepsInline.cpp leaves out
//    the call where it can.
// 4. Addresses of constants are others in the next process: a slot that may hold one
//    is encoded, as is memory (ConstantAddresses.cpp).
#include "transform/EmitResumption.h"
#include "analysis/Calls.h"
#include "transform/InsertCalls.h"
#include "transform/StepsInline.h"

#include "holdfast/abi/justdo_abi.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"
#include "llvm/Transforms/Utils/SSAUpdater.h"

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumSlots, "Registers with a place in a frame");
STATISTIC(NumDoubled, "Registers with two places in a frame");
STATISTIC(FrameBytes, "Bytes of frames");

namespace holdfast {

namespace {

class FramePlanner {
public:
  explicit FramePlanner(Function &F) : F(F), Layout(F.getDataLayout()) {}

  FrameLayout run(const ResumePlan &Plan, ArrayRef<ResumePoint> Points) {
    for (Instruction &I : F.getEntryBlock())
      if (auto *Local = dyn_cast<AllocaInst>(&I))
        Frame.Locals[Local] = place(
            Frame.Bytes, Local->getAllocationSize(Layout)->getFixedValue(),
            Local->getAlign());
    for (auto [V, Doubled] : Plan.Doubled)
      if (!Doubled)
        Frame.Slots[V] = placeOf(Frame.Bytes, *V);
    for (const ResumePoint &P : Points) // whether anybody reads it or not
      if (P.Result && !Plan.Doubled.contains(P.Result))
        Frame.Slots[P.Result] = placeOf(Frame.Bytes, *P.Result);
    for (auto [V, Doubled] : Plan.Doubled)
      if (Doubled) {
        ++NumDoubled;
        Frame.Slots[V] = placeOf(Frame.SnapshotBytes, *V);
      }
    NumSlots += Frame.Slots.size();
    Frame.SnapshotBytes = alignTo(Frame.SnapshotBytes, SlotAlign);
    Frame.SnapshotsAt = alignTo(Frame.Bytes, SlotAlign);
    Frame.Bytes = Frame.SnapshotsAt + 2 * Frame.SnapshotBytes;
    FrameBytes += Frame.Bytes;
    return std::move(Frame);
  }

private:
  static constexpr uint64_t SlotAlign = 64; // as the frame itself
  Function &F;
  const DataLayout &Layout;
  FrameLayout Frame;

  uint64_t place(uint64_t &End, uint64_t Bytes, Align At) const {
    uint64_t Offset = alignTo(End, std::min(At, Align(SlotAlign)));
    End = Offset + Bytes;
    return Offset;
  }
  uint64_t placeOf(uint64_t &End, const Value &V) const {
    return place(End, Layout.getTypeAllocSize(V.getType()),
                 Layout.getABITypeAlign(V.getType()));
  }
};

class Resumer {
public:
  Resumer(Function &F, const SectionOptions &Options,
          GlobalVariable &Descriptor, const Steps &Cut, const ResumePlan &Plan,
          FrameLayout Frame, ConstantAddresses &Addresses)
      : F(F), M(*F.getParent()), Context(F.getContext()),
        Layout(F.getDataLayout()), Engine(*Options.Engine),
        BetweenLocks(Options.BetweenLocks), Descriptor(Descriptor), Cut(Cut),
        Plan(Plan), Frame(std::move(Frame)), Addresses(Addresses),
        Builder(Context) {
    for (auto [V, Doubled] : Plan.Doubled)
      if (Addresses.mayHold(*V))
        Fixed.insert(V);
  }

  void run(const ArgumentBlock &Arguments) {
    enter(Arguments);
    for (Instruction *Write : Cut.Noted)
      note(*Write);
    for (size_t I = 0; I != Cut.All.size(); ++I)
      emitStep(Cut.All[I], unsigned(I) + 1, Plan.At[I]);
    for (size_t I = 0; I != Cut.All.size(); ++I)
      emitResumption(Cut.All[I], unsigned(I) + 1, Plan.At[I]);
    joinRegisters();
    for (auto [Call, Block] : Now)
      Call->eraseFromParent();
    Addresses.rewrite();
    leave();
    DominatorTree Tree(F);
    PromoteMemToReg({Snapshot}, Tree);
    putStepsInLine();
  }

private:
  Function &F;
  Module &M;
  LLVMContext &Context;
  const DataLayout &Layout;
  const EngineInfo &Engine;
  const bool BetweenLocks;
  GlobalVariable &Descriptor;
  const Steps &Cut;
  const ResumePlan &Plan;
  const FrameLayout Frame;
  ConstantAddresses &Addresses;
  IRBuilder<> Builder;
  BasicBlock *Entry = nullptr;
  Value *Base = nullptr;          // of the frame
  Value *Resumed = nullptr;       // point and snapshot, or 0
  AllocaInst *Snapshot = nullptr; // the bit of the one that counts
  SwitchInst *Dispatch = nullptr;
  SmallPtrSet<const Value *, 8> Fixed;   // registers: (4)
  MapVector<Instruction *, Value *> Now; // what took a call's place
  DenseMap<Value *, Value *> Before;     // the other way round
  DenseMap<Value *, SmallVector<std::pair<BasicBlock *, Value *>, 4>> Restored;
  SmallPtrSet<const BasicBlock *, 16> Resumptions;
  SmallVector<CallInst *, 2> Saved; // notes of the step that is being made
  SmallVector<StepCall, 16> Calls;  // of steps that can be in line
  SmallVector<CallInst *, 8> Notes; // that belong to none of these

  void putStepsInLine() {
    for (const StepCall &Call : Calls)
      putStepInLine(Call, Engine);
    for (CallInst *Note : Notes)
      putNoteInLine(*Note);
  }

  CallInst *call(StringRef Step, Type *Result, ArrayRef<Value *> Arguments) {
    SmallVector<Type *, 4> Types;
    for (Value *A : Arguments)
      Types.push_back(A->getType());
    CallInst *Call = Builder.CreateCall(
        M.getOrInsertFunction(Engine.callee(Step),
                              FunctionType::get(Result, Types, false)),
        Arguments);
    Call->setDoesNotThrow();
    return Call;
  }
  CallInst *call(StringRef Step, ArrayRef<Value *> Arguments) {
    return call(Step, Builder.getVoidTy(), Arguments);
  }

  Value *at(Value *From, uint64_t Offset) {
    return Builder.CreatePtrAdd(From, Builder.getInt64(Offset));
  }

  Value *now(Value *V) const {
    Value *Changed = Now.lookup(dyn_cast<Instruction>(V));
    return Changed ? Changed : V;
  }

  /// Returns the pointer in an aggregate that was passed in memory or as words.
  Value *pointerIn(Value &Given, uint64_t OffsetBytes) {
    if (Given.getType()->isPointerTy())
      return Builder.CreateAlignedLoad(Builder.getPtrTy(),
                                       at(&Given, OffsetBytes), Align(1));
    Value *Word = &Given;
    if (Given.getType()->isArrayTy())
      Word = Builder.CreateExtractValue(
          Word, unsigned(OffsetBytes / sizeof(uint64_t)));
    return Builder.CreateIntToPtr(Word, Builder.getPtrTy());
  }

  /// Returns the first of the arguments that lead to the pool and are not null.
  Value *poolAddress(const ArgumentBlock &Arguments) {
    Value *Null = ConstantPointerNull::get(Builder.getPtrTy());
    Value *First = Null;
    for (const PackedArgument &A : reverse(Arguments.Arguments)) {
      Value *Given = F.getArg(A.Index);
      auto Choose = [&](Value *One) {
        First =
            Builder.CreateSelect(Builder.CreateICmpEQ(One, Null), First, One);
      };
      if (A.Kind == HF_ARG_POOL_POINTER)
        Choose(Given);
      for (const PointerField &Field : A.Fields)
        if (Field.Always)
          Choose(pointerIn(*Given, Field.OffsetBytes));
    }
    return First;
  }

  /// A pointer that the section certainly follows leads into the pool: else it could
  /// not go on in another process. A section without a mark may follow it outside.
  void checkArguments(const ArgumentBlock &Arguments) {
    for (const PackedArgument &A : Arguments.Arguments)
      if (A.Kind == HF_ARG_POOL_POINTER && !BetweenLocks)
        call("argument", {F.getArg(A.Index), Builder.getInt32(A.Index)});
  }

  /// (2)
  void enter(const ArgumentBlock &Arguments) {
    BasicBlock *Begin = &F.getEntryBlock();
    Entry = BasicBlock::Create(Context, "enter", &F, Begin);
    Builder.SetInsertPoint(Entry);
    if (DISubprogram *Program = F.getSubprogram())
      Builder.SetCurrentDebugLocation(
          DILocation::get(Context, Program->getLine(), 0, Program));
    AllocaInst *Place = Builder.CreateAlloca(Builder.getInt32Ty());
    Snapshot = Builder.CreateAlloca(Builder.getInt32Ty());
    Base = call("enter", Builder.getPtrTy(),
                {&Descriptor, poolAddress(Arguments), Place});
    checkArguments(Arguments);
    Resumed = Builder.CreateLoad(Builder.getInt32Ty(), Place);
    Builder.CreateStore(Builder.CreateAnd(Resumed, HF_JUSTDO_SNAPSHOT),
                        Snapshot);
    for (auto [Local, Offset] : Frame.Locals) {
      Local->replaceAllUsesWith(at(Base, Offset));
      Local->eraseFromParent();
    }
    Dispatch =
        Builder.CreateSwitch(Builder.CreateAnd(Resumed, HF_JUSTDO_SNAPSHOT - 1),
                             Begin, unsigned(Cut.All.size()));
    for (Instruction &I : make_early_inc_range(instructions(F)))
      if (isa<LifetimeIntrinsic>(I))
        I.eraseFromParent();
  }

  void setPoint(const Step &S) {
    Instruction *At = S.At ? S.At : S.Before->getTerminator();
    Builder.SetInsertPoint(At);
    if (!Builder.getCurrentDebugLocation())
      if (DISubprogram *Program = F.getSubprogram())
        Builder.SetCurrentDebugLocation(
            DILocation::get(Context, Program->getLine(), 0, Program));
  }

  /// A write between steps is durable before the next step.
  void note(Instruction &Write) {
    Builder.SetInsertPoint(Write.getNextNode());
    Value *Bytes =
        Builder.CreateZExtOrTrunc(writtenBytes(Write), Builder.getInt64Ty());
    Notes.push_back(call("note", {writtenAddress(Write), Bytes}));
  }

  // --- Steps -----------------------------------------------------------------

  struct Span {
    uint64_t From, To;
  };

  /// Notes what lies near each other at once.
  void noteSpans(Value *From, SmallVectorImpl<Span> &Spans) {
    static constexpr uint64_t NearBytes = 64;
    sort(Spans, [](const Span &L, const Span &R) { return L.From < R.From; });
    for (size_t I = 0; I < Spans.size();) {
      Span All = Spans[I++];
      for (; I < Spans.size() && Spans[I].From <= All.To + NearBytes; ++I)
        All.To = std::max(All.To, Spans[I].To);
      Saved.push_back(call(
          "note", {at(From, All.From), Builder.getInt64(All.To - All.From)}));
    }
  }

  Value *snapshotAt(Value *Bit) {
    Value *Second = Builder.CreateICmpNE(Bit, Builder.getInt32(0));
    return at(Builder.CreateSelect(
                  Second, at(Base, Frame.SnapshotsAt + Frame.SnapshotBytes),
                  at(Base, Frame.SnapshotsAt)),
              0);
  }

  /// (3) Returns the point's number, with the bit of the snapshot that counts
  /// there.
  Value *save(unsigned Number, const ResumeNeeds &Needs, Value *&Next) {
    SmallVector<Span, 8> Single, Doubled;
    Value *Bit = Builder.getInt32(0);
    Next = nullptr;
    if (Frame.SnapshotBytes != 0) {
      Bit =
          Builder.CreateXor(Builder.CreateLoad(Builder.getInt32Ty(), Snapshot),
                            HF_JUSTDO_SNAPSHOT);
      Next = snapshotAt(Bit);
      Builder.CreateStore(Bit, Snapshot);
    }
    for (Value *V : Needs.Written) {
      bool IsDoubled = Plan.Doubled.lookup(V);
      uint64_t Offset = Frame.Slots.lookup(V);
      uint64_t Bytes = Layout.getTypeStoreSize(V->getType());
      Value *Now = now(V);
      Builder.CreateStore(Fixed.contains(V) ? Addresses.encoded(Builder, Now)
                                            : Now,
                          at(IsDoubled ? Next : Base, Offset));
      (IsDoubled ? Doubled : Single).push_back({Offset, Offset + Bytes});
    }
    noteSpans(Base, Single);
    if (!Doubled.empty())
      noteSpans(Next, Doubled);
    return Builder.CreateOr(Bit, Number);
  }

  Value *asWord(Value *V) {
    Type *T = V->getType();
    if (T->isPointerTy())
      return Builder.CreatePtrToInt(V, Builder.getInt64Ty());
    if (!T->isIntegerTy())
      V = Builder.CreateBitCast(
          V, Builder.getIntNTy(unsigned(T->getPrimitiveSizeInBits())));
    return Builder.CreateZExt(V, Builder.getInt64Ty());
  }

  void emitStore(StoreInst *Store, Value *Point) {
    Value *Stored = Store->getValueOperand();
    if (Addresses.takeStore(*Store))
      Stored = Addresses.encoded(Builder, Stored);
    // Others may change what was stored before, once they see this.
    if (Store->isAtomic())
      Saved.push_back(call("note", {Base, Builder.getInt64(0)}));
    else
      announceAccess(Builder, "write", Store->getPointerOperand(),
                     writtenBytes(*Store));
    Value *Bytes =
        Builder.CreateTrunc(writtenBytes(*Store), Builder.getInt32Ty());
    Calls.push_back({call("store", {Store->getPointerOperand(), asWord(Stored),
                                    Bytes, Point}),
                     Saved});
    // The runtime stores with release order.
    if (Store->getOrdering() == AtomicOrdering::SequentiallyConsistent)
      Builder.CreateFence(AtomicOrdering::SequentiallyConsistent);
  }

  void emitStep(const Step &S, unsigned Number, const ResumeNeeds &Needs) {
    setPoint(S);
    Value *Snapshots = nullptr;
    Saved.clear();
    Value *Point = save(Number, Needs, Snapshots);
    if (S.What != Step::Store && S.What != Step::Point &&
        S.What != Step::Begin) // until then steps are no steps
      append_range(Notes, Saved);
    auto Length = [&](Instruction &I) {
      return Builder.CreateZExtOrTrunc(writtenBytes(I), Builder.getInt64Ty());
    };
    Value *NoLock = ConstantPointerNull::get(Builder.getPtrTy());
    switch (S.What) {
    case Step::Begin:
    case Step::End:
      call(S.What == Step::Begin ? "lock" : "unlock",
           {NoLock, Builder.getInt32(HF_JUSTDO_NO_LOCK), Point});
      return;
    case Step::Point:
      Calls.push_back({call("point", Point), Saved});
      return;
    case Step::Call:
      return announceCall(Point);
    case Step::Store:
      emitStore(cast<StoreInst>(S.At), Point);
      break;
    case Step::Copy: {
      auto *Copy = cast<MemTransferInst>(S.At);
      announceAccess(Builder, "read", Copy->getRawSource(), Length(*Copy));
      announceAccess(Builder, "write", Copy->getRawDest(), Length(*Copy));
      call("copy",
           {Copy->getRawDest(), Copy->getRawSource(), Length(*Copy), Point});
      break;
    }
    case Step::Fill: {
      auto *Fill = cast<MemSetInst>(S.At);
      announceAccess(Builder, "write", Fill->getRawDest(), Length(*Fill));
      call("fill", {Fill->getRawDest(),
                    Builder.CreateZExt(Fill->getValue(), Builder.getInt32Ty()),
                    Length(*Fill), Point});
      break;
    }
    case Step::Alloc: {
      bool IsDoubled = Plan.Doubled.lookup(S.At);
      Value *Slot = at(IsDoubled ? Snapshots : Base, Frame.Slots.lookup(S.At));
      Value *Bytes = Builder.CreateZExtOrTrunc(
          cast<CallBase>(S.At)->getArgOperand(0), Builder.getInt64Ty());
      Value *Block = call("alloc", Builder.getPtrTy(), {Bytes, Slot, Point});
      Now[S.At] = Block; // which the plan goes on calling by its old name
      Before[Block] = S.At;
      S.At->replaceAllUsesWith(Block);
      return;
    }
    case Step::Free:
      call("free", {cast<CallBase>(S.At)->getArgOperand(0), Point});
      break;
    case Step::Lock:
    case Step::Unlock:
      call(S.What == Step::Lock ? "lock" : "unlock",
           {cast<CallBase>(S.At)->getArgOperand(0), lockKind(*S.At), Point});
      break;
    case Step::TryLock:
      return tryLock(S, Point);
    }
    S.At->eraseFromParent();
  }

  /// This function may have read since its last step what the callee writes in place.
  /// The callee makes its result in this function's frame (FrameLocals.h). If that was
  /// read since, the function has made a step, and the runtime moves from there.
  void announceCall(Value *Point) {
    if (Engine.Logs == LoggedWrites::regions)
      call("point", Point);
    call("call", Point);
  }

  static Value *lockKind(const Instruction &I) {
    // Member functions of hf::shared_mutex, whose own name has "shared", too.
    bool IsShared =
        calledFunction(cast<CallBase>(I))->getName().ends_with("_sharedEv");
    return ConstantInt::get(Type::getInt32Ty(I.getContext()),
                            IsShared ? HF_JUSTDO_SHARED : HF_JUSTDO_EXCLUSIVE);
  }

  /// Where the lock is not held the point has not moved, and the snapshot that counted
  /// still does.
  void tryLock(const Step &S, Value *Point) {
    auto *Branch = cast<BranchInst>(S.Before->getTerminator());
    Value *Held =
        call("try_lock", Builder.getInt32Ty(),
             {cast<CallBase>(S.At)->getArgOperand(0), lockKind(*S.At), Point});
    Branch->setCondition(
        Builder.CreateICmpNE(Held, Builder.getInt32(0), "is_held"));
    S.At->eraseFromParent();
    if (Frame.SnapshotBytes == 0)
      return;
    BasicBlock *NotHeld = Branch->getSuccessor(1);
    Builder.SetInsertPoint(NotHeld, NotHeld->getFirstInsertionPt());
    Builder.CreateStore(
        Builder.CreateXor(Builder.CreateLoad(Builder.getInt32Ty(), Snapshot),
                          HF_JUSTDO_SNAPSHOT),
        Snapshot);
  }

  // --- Resumption ------------------------------------------------------------

  void emitResumption(const Step &S, unsigned Number,
                      const ResumeNeeds &Needs) {
    BasicBlock *Block =
        BasicBlock::Create(Context, "resume." + Twine(Number), &F);
    Dispatch->addCase(Builder.getInt32(Number), Block);
    Builder.SetInsertPoint(Block);
    Builder.SetCurrentDebugLocation(Entry->getTerminator()->getDebugLoc());
    if (S.What == Step::End) { // the section is over
      if (F.getReturnType()->isVoidTy())
        Builder.CreateRetVoid();
      else
        Builder.CreateRet(PoisonValue::get(F.getReturnType()));
      return;
    }
    Resumptions.insert(Block);
    DenseMap<Value *, Value *> Here;
    Value *Counts =
        Frame.SnapshotBytes == 0
            ? nullptr
            : snapshotAt(Builder.CreateAnd(Resumed, HF_JUSTDO_SNAPSHOT));
    for (Value *V : Needs.Saved) {
      Value *Slot =
          at(Plan.Doubled.lookup(V) ? Counts : Base, Frame.Slots.lookup(V));
      Value *Found = Builder.CreateLoad(V->getType(), Slot, V->getName());
      Here[V] = Fixed.contains(V) ? Addresses.decoded(Builder, Found) : Found;
    }
    for (Value *V : Needs.Live)
      Restored[V].push_back({Block, computedAgain(V, Here)});
    Builder.CreateBr(S.Behind);
    for (PHINode &Phi : S.Behind->phis())
      report_fatal_error("holdfast: a join at a resume point: " +
                         Phi.getName());
  }

  /// Returns the register's value behind the point: what is wanted for the result alone
  /// is not known any more.
  Value *computedAgain(Value *V, DenseMap<Value *, Value *> &Here) {
    if (Value *Called = Before.lookup(V))
      V = Called;
    if (Value *Known = Here.lookup(V))
      return Known;
    auto *I = dyn_cast<Instruction>(V);
    if (isa<Constant>(V) || (I && I->getParent() == Entry))
      return V;
    if (auto *A = dyn_cast<Argument>(V); A && A->hasStructRetAttr())
      return V;
    if (!I || !isComputedAgain(I))
      return PoisonValue::get(V->getType());
    Instruction *Again = I->clone();
    for (Use &Operand : Again->operands())
      Operand.set(computedAgain(Operand.get(), Here));
    Builder.Insert(Again, I->getName());
    Addresses.addCopy(*I, *Again);
    return Here[V] = Again;
  }

  /// Every register is what was set, or was found in the frame, last.
  void joinRegisters() {
    for (auto &[V, At] : Restored) {
      Value *Set = now(V);
      auto *I = dyn_cast<Instruction>(Set);
      BasicBlock *In = I ? I->getParent() : Entry;
      SmallVector<Use *, 16> Uses;
      for (Use &U : Set->uses())
        if (needsJoin(U, *In))
          Uses.push_back(&U);
      SSAUpdater Join;
      Join.Initialize(Set->getType(), Set->getName());
      Join.AddAvailableValue(In, Set);
      for (auto [Block, Value] : At)
        Join.AddAvailableValue(Block, Value);
      for (Use *U : Uses)
        Join.RewriteUse(*U);
    }
  }

  bool needsJoin(const Use &U, const BasicBlock &SetIn) const {
    const auto *By = cast<Instruction>(U.getUser());
    const auto *Phi = dyn_cast<PHINode>(By);
    const BasicBlock *At = Phi ? Phi->getIncomingBlock(U) : By->getParent();
    return At != &SetIn && !Resumptions.contains(At);
  }

  void leave() {
    for (BasicBlock &Block : F)
      if (auto *Return = dyn_cast<ReturnInst>(Block.getTerminator())) {
        Builder.SetInsertPoint(Return);
        if (!Return->getDebugLoc())
          Builder.SetCurrentDebugLocation(
              Entry->getTerminator()->getDebugLoc());
        call("leave", {});
      }
  }
};

} // namespace

FrameLayout layOutFrame(Function &F, const ResumePlan &Plan,
                        ArrayRef<ResumePoint> Points) {
  return FramePlanner(F).run(Plan, Points);
}

void emitResumption(Function &F, const SectionOptions &Options,
                    GlobalVariable &Descriptor, const Steps &Cut,
                    const ResumePlan &Plan, FrameLayout Frame,
                    ConstantAddresses &Addresses,
                    const ArgumentBlock &Arguments) {
  Resumer(F, Options, Descriptor, Cut, Plan, std::move(Frame), Addresses)
      .run(Arguments);
}

} // namespace holdfast
