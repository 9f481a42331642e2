// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry of a word log (src/log/word_log.hpp), in line:
//
// 1. hf_words says where the next one goes. No room, or an address outside of
//    the pool, or near its end: the call does it.
// 2. The entry is stored, then the word that counts it, then what it is for.
//    The processor keeps that order, as far as a killed process can tell; a
//    fence for this thread alone keeps the compiler to it.
// 3. What a loop stores to again and again is left to the call, which remembers
//    what it has logged.
// 4. An engine that logs inputs alone keeps what else is overwritten, so that the
//    section can be rolled back, too: a note of that is a call.
#include "transform/WordsInline.h"
#include "analysis/LogsAhead.h"

#include "holdfast/abi/holdfast_abi.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#include <cstddef>

using namespace llvm;

namespace holdfast {

namespace {

constexpr uint64_t WordBytes = 8;

/// A call of the runtime that the section makes before a store.
class WordCall {
public:
  WordCall(CallInst &Call, bool IsNote)
      : Call(Call), IsNote(IsNote), M(*Call.getModule()),
        Word(Type::getInt64Ty(M.getContext())),
        Pointer(PointerType::getUnqual(M.getContext())) {}

  void putInLine() {
    BasicBlock *Head = Call.getParent();
    BasicBlock *Slow = Head->splitBasicBlock(Call.getIterator(), "by_call");
    BasicBlock *Done =
        Slow->splitBasicBlock(std::next(Call.getIterator()), "logged");
    BasicBlock *Write = IsNote ? Done : create("log_word", Slow);
    BasicBlock *Check = IsNote ? Done : create("is_in_pool", Write);

    IRBuilder<> Builder(Head->getTerminator());
    Builder.SetCurrentDebugLocation(Call.getDebugLoc());
    Value *Next = load(Builder, offsetof(hf_word_log, next), Pointer);
    Value *Limit = load(Builder, offsetof(hf_word_log, limit), Pointer);
    Builder.CreateCondBr(Builder.CreateICmpULT(Next, Limit), Check, Slow,
                         likely());
    Head->getTerminator()->eraseFromParent(); // what split the block
    if (IsNote)
      return;

    Builder.SetInsertPoint(Check);
    Value *Address = Call.getArgOperand(0);
    Value *Offset = Builder.CreateSub(
        Builder.CreatePtrToInt(Address, Word),
        Builder.CreatePtrToInt(
            load(Builder, offsetof(hf_word_log, base), Pointer), Word));
    Value *End = load(Builder, offsetof(hf_word_log, words_end), Word);
    Builder.CreateCondBr(Builder.CreateICmpULT(Offset, End), Write, Slow,
                         likely());

    Builder.SetInsertPoint(Write);
    entry(Builder, Next, Offset, Address);
    count(Builder,
          Builder.CreatePtrAdd(Next, Builder.getInt64(HF_WORD_ENTRY_BYTES)));
    Builder.CreateBr(Done);
  }

  /// Whether it is of as many bytes as a load has.
  static bool isShort(const CallInst &Call) {
    const auto *Bytes = dyn_cast<ConstantInt>(Call.getArgOperand(1));
    if (!Bytes)
      return false;
    switch (Bytes->getZExtValue()) {
    case 1:
    case 2:
    case 4:
    case 8:
      return true;
    }
    return false;
  }

private:
  CallInst &Call;
  bool IsNote;
  Module &M;
  Type *Word, *Pointer;

  BasicBlock *create(StringRef Name, BasicBlock *Before) {
    return BasicBlock::Create(M.getContext(), Name, Call.getFunction(), Before);
  }

  MDNode *likely() {
    return MDBuilder(M.getContext()).createLikelyBranchWeights();
  }

  Value *place(IRBuilder<> &Builder, uint64_t Offset) {
    static_assert(sizeof(hf_word_log) == 5 * WordBytes);
    auto *T = StructType::get(Pointer, Pointer, Pointer, Pointer, Word);
    Constant *Words = M.getOrInsertGlobal("hf_words", T, [&] {
      return new GlobalVariable(
          M, T, /*isConstant=*/false, GlobalValue::ExternalLinkage, nullptr,
          "hf_words", nullptr, GlobalValue::InitialExecTLSModel);
    });
    return Builder.CreatePtrAdd(Builder.CreateThreadLocalAddress(Words),
                                Builder.getInt64(Offset));
  }
  Value *load(IRBuilder<> &Builder, uint64_t Offset, Type *T) {
    return Builder.CreateAlignedLoad(T, place(Builder, Offset),
                                     Align(WordBytes));
  }

  void entry(IRBuilder<> &Builder, Value *At, Value *Offset, Value *Address) {
    uint64_t Bytes = cast<ConstantInt>(Call.getArgOperand(1))->getZExtValue();
    Value *What = Builder.CreateOr(
        Offset, Builder.getInt64((uint64_t{HF_OLD_WORD_KIND} + Bytes) << 56));
    Value *Old = Builder.CreateAlignedLoad(
        Builder.getIntNTy(static_cast<unsigned>(8 * Bytes)), Address, Align(1));
    Builder.CreateAlignedStore(What, At, Align(WordBytes));
    Builder.CreateAlignedStore(
        Builder.CreateZExt(Old, Word),
        Builder.CreatePtrAdd(At, Builder.getInt64(WordBytes)),
        Align(WordBytes));
  }

  /// The log ends at 'At' now (2).
  void count(IRBuilder<> &Builder, Value *At) {
    Builder.CreateAlignedStore(At, place(Builder, offsetof(hf_word_log, next)),
                               Align(WordBytes));
    Value *End = Builder.CreateSub(
        Builder.CreatePtrToInt(At, Word),
        Builder.CreatePtrToInt(
            load(Builder, offsetof(hf_word_log, base), Pointer), Word));
    StoreInst *Counted = Builder.CreateAlignedStore(
        End, load(Builder, offsetof(hf_word_log, logged), Pointer),
        Align(WordBytes));
    Counted->setAtomic(AtomicOrdering::Release);
    Builder.CreateFence(AtomicOrdering::SequentiallyConsistent,
                        SyncScope::SingleThread);
  }
};

} // namespace

void putWordsInLine(Function &F, const EngineInfo &Engine) {
  const std::string Log = Engine.callee("log"), Note = Engine.callee("note");
  const bool Keeps = Engine.Logs == LoggedWrites::inputs;
  DominatorTree Dominators(F);
  LoopInfo Loops(Dominators);
  SmallVector<std::pair<CallInst *, bool>, 16> Found;
  for (Instruction &I : instructions(F)) {
    auto *Call = dyn_cast<CallInst>(&I);
    const Function *Callee = Call ? Call->getCalledFunction() : nullptr;
    if (!Callee)
      continue;
    if (Keeps && Callee->getName() == Note && !Call->hasMetadata(NoEntryName))
      continue;
    const bool IsNote =
        Callee->getName() == Note || Callee->getName() == LogFreeName;
    if (!IsNote && Callee->getName() != Log &&
        Callee->getName() != LogAheadName)
      continue;
    const Loop *Around = Loops.getLoopFor(Call->getParent());
    const bool Repeats = // (3)
        Around && Around->isLoopInvariant(Call->getArgOperand(0));
    if (IsNote || (WordCall::isShort(*Call) && !Repeats))
      Found.push_back({Call, IsNote});
  }
  for (auto [Call, IsNote] : Found)
    WordCall(*Call, IsNote).putInLine();
}

} // namespace holdfast
