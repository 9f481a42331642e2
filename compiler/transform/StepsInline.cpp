// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step (holdfast/abi/justdo_abi.h) in line, for media that keep order:
//
// 1. hf_justdo_steps says whether the section's steps are plain, and where the pool's words
//    lie. Else a call does it.
// 2. The entry beside the active one is stored, then the program counter, which makes it
//    active, then the word. A killed process leaves what it has stored in that order;
//    fences for this thread alone keep the compiler to it. Nothing is torn.
// 3. What the step's function has saved in its frame needs no note then: it is
//    stored before the program counter.
#include "transform/StepsInline.h"

#include "holdfast/abi/justdo_abi.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"

#include <cstddef>

using namespace llvm;

namespace holdfast {

namespace {

constexpr uint64_t WordBytes = 8;

class InLine {
public:
  explicit InLine(CallInst &Call)
      : Call(Call), M(*Call.getModule()),
        Word(Type::getInt64Ty(M.getContext())),
        Pointer(PointerType::getUnqual(M.getContext())),
        Builder(M.getContext()) {}

  void store(ArrayRef<CallInst *> Saved) {
    Value *Address = Call.getArgOperand(0);
    uint64_t Bytes = cast<ConstantInt>(Call.getArgOperand(2))->getZExtValue();
    Value *Offset = nullptr;
    split(Saved, [&] { return isWordOfPool(Offset = offsetOf(Address)); });
    Value *Stored = Call.getArgOperand(1);
    uint64_t What = uint64_t{HF_JUSTDO_STORES} << 56 | Bytes << 48;
    entry(Builder.CreateOr(Offset, What), Stored, Call.getArgOperand(3));
    atomic(Builder.CreateTrunc(Stored, Builder.getIntNTy(unsigned(8 * Bytes))),
           Address, Bytes);
    count(offsetof(hf_justdo_plain_steps, bytes), Bytes + lengths(Saved));
  }

  void point(ArrayRef<CallInst *> Saved) {
    split(Saved, [&] {
      return Builder.CreateIsNotNull(
          load(offsetof(hf_justdo_plain_steps, words_end), Word));
    });
    entry(Builder.getInt64(0), nullptr, Call.getArgOperand(0));
    if (uint64_t Bytes = lengths(Saved))
      count(offsetof(hf_justdo_plain_steps, bytes), Bytes);
  }

  void note() {
    split({}, [&] { return isWordOfPool(offsetOf(Call.getArgOperand(0))); });
    count(offsetof(hf_justdo_plain_steps, bytes), Call.getArgOperand(1));
  }

private:
  CallInst &Call;
  Module &M;
  Type *Word, *Pointer;
  IRBuilder<> Builder;

  /// Makes the call only where 'IsPlain' is false. What follows is built beside it.
  void split(ArrayRef<CallInst *> Saved, function_ref<Value *()> IsPlain) {
    BasicBlock *Head = Call.getParent();
    for (CallInst *Note : Saved)
      Note->moveBefore(*Head, Call.getIterator());
    Instruction &First = Saved.empty() ? Call : *Saved.front();
    BasicBlock *Slow = Head->splitBasicBlock(First.getIterator(), "by_call");
    BasicBlock *Done =
        Slow->splitBasicBlock(std::next(Call.getIterator()), "stepped");
    BasicBlock *Plain =
        BasicBlock::Create(M.getContext(), "in_line", Call.getFunction());
    Builder.SetInsertPoint(Head->getTerminator());
    Builder.SetCurrentDebugLocation(Call.getDebugLoc());
    Builder.CreateCondBr(IsPlain(), Plain, Slow,
                         MDBuilder(M.getContext()).createLikelyBranchWeights());
    Head->getTerminator()->eraseFromParent(); // what split the block
    Builder.SetInsertPoint(Plain);
    Builder.SetInsertPoint(Builder.CreateBr(Done));
  }

  Value *place(uint64_t Offset) {
    static_assert(sizeof(hf_justdo_plain_steps) == 6 * WordBytes);
    auto *T = StructType::get(Pointer, Pointer, Word, Word, Word, Word);
    Constant *Steps = M.getOrInsertGlobal("hf_justdo_steps", T, [&] {
      return new GlobalVariable(
          M, T, /*isConstant=*/false, GlobalValue::ExternalLinkage, nullptr,
          "hf_justdo_steps", nullptr, GlobalValue::InitialExecTLSModel);
    });
    return Builder.CreatePtrAdd(Builder.CreateThreadLocalAddress(Steps),
                                Builder.getInt64(Offset));
  }
  Value *load(uint64_t Offset, Type *T) {
    return Builder.CreateAlignedLoad(T, place(Offset), Align(WordBytes));
  }

  Value *offsetOf(Value *Address) {
    return Builder.CreateSub(
        Builder.CreatePtrToInt(Address, Word),
        Builder.CreatePtrToInt(
            load(offsetof(hf_justdo_plain_steps, base), Pointer), Word));
  }
  Value *isWordOfPool(Value *Offset) {
    return Builder.CreateICmpULT(
        Offset, load(offsetof(hf_justdo_plain_steps, words_end), Word));
  }

  void atomic(Value *Stored, Value *To, uint64_t Bytes) {
    Builder.CreateAlignedStore(Stored, To, Align(Bytes))
        ->setAtomic(AtomicOrdering::Release);
    Builder.CreateFence(AtomicOrdering::SequentiallyConsistent,
                        SyncScope::SingleThread);
  }

  /// (2)
  void entry(Value *Where, Value *Stored, Value *Point) {
    Value *Log = load(offsetof(hf_justdo_plain_steps, log), Pointer);
    Value *Other =
        Builder.CreateLShr(Builder.CreateNot(Builder.CreateAlignedLoad(
                               Word, Log, Align(WordBytes))),
                           63);
    Value *At = Builder.CreateGEP(
        Word, Log,
        Builder.CreateMul(Other, Builder.getInt64(HF_JUSTDO_ENTRY_WORDS)));
    auto Entry = [&](unsigned I) {
      return Builder.CreatePtrAdd(At, Builder.getInt64((1 + I) * WordBytes));
    };
    Builder.CreateAlignedStore(Where, Entry(0), Align(WordBytes));
    if (Stored)
      Builder.CreateAlignedStore(Stored, Entry(1), Align(WordBytes));
    Value *Counter = Builder.CreateOr(
        Builder.CreateOr(load(offsetof(hf_justdo_plain_steps, counter), Word),
                         Builder.CreateZExt(Point, Word)),
        Builder.CreateShl(Other, 63));
    Builder.CreateFence(AtomicOrdering::SequentiallyConsistent,
                        SyncScope::SingleThread);
    atomic(Counter, Log, WordBytes);
    count(offsetof(hf_justdo_plain_steps, entries), 1);
  }

  void count(uint64_t Field, uint64_t More) {
    count(Field, Builder.getInt64(More));
  }
  void count(uint64_t Field, Value *More) {
    Builder.CreateAlignedStore(Builder.CreateAdd(load(Field, Word), More),
                               place(Field), Align(WordBytes));
  }

  /// What notes of frames are of.
  static uint64_t lengths(ArrayRef<CallInst *> Notes) {
    uint64_t Sum = 0;
    for (const CallInst *Note : Notes)
      Sum += cast<ConstantInt>(Note->getArgOperand(1))->getZExtValue();
    return Sum;
  }
};

} // namespace

void putStepInLine(const StepCall &Call, const EngineInfo &Engine) {
  bool IsStore =
      Call.Step->getCalledFunction()->getName() == Engine.callee("store");
  if (IsStore)
    InLine(*Call.Step).store(Call.Saved);
  else
    InLine(*Call.Step).point(Call.Saved);
}

void putNoteInLine(CallInst &Note) { InLine(Note).note(); }

} // namespace holdfast
