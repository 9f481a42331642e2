// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry of a word log (src/log/word_log.hpp), in line:
//
// 1. hf_words says where the next entry goes. The call of the runtime makes the
//    entry if the log is full, or if the address is outside of the pool or near
//    its end.
// 2. The entry is stored, then the word that counts it, then the section's store.
//    The processor keeps that order as a killed process sees it. A fence for this
//    thread alone keeps the compiler to it.
// 3. A word that a loop stores to again and again is left to the call, which
//    remembers what it has logged.
// 4. An engine that logs inputs alone keeps what else is overwritten, so that the
//    section can be rolled back, too: a note of that is a call.
// 5. Of up to three words each gets an entry, counted together: no more bytes
//    than the one that the call would make.
// 6. What finds no room needs no call if it goes to memory that the section took
//    and has just stored to. An entry does no harm there: where there is room,
//    nobody asks.
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
    BasicBlock *Own = create("is_known_fresh", Slow);
    BasicBlock *Write = IsNote ? Done : create("log_word", Own);
    BasicBlock *Check = IsNote ? Done : create("is_in_pool", Write);

    IRBuilder<> Builder(Head->getTerminator());
    Builder.SetCurrentDebugLocation(Call.getDebugLoc());
    Value *Next = load(Builder, offsetof(hf_word_log, next), Pointer);
    Value *Limit = load(Builder, offsetof(hf_word_log, limit), Pointer);
    const auto Pieces = piecesOf(Call);
    const uint64_t More = IsNote ? 0 : Pieces.size() - 1; // entries (4)
    Value *Last = advanced(Builder, Next, More * HF_WORD_ENTRY_BYTES);
    Builder.CreateCondBr(Builder.CreateICmpULT(Last, Limit), Check, Own,
                         likely());
    Head->getTerminator()->eraseFromParent(); // what split the block

    Builder.SetInsertPoint(Own); // (6)
    Value *Within = Builder.CreateSub(
        Builder.CreatePtrToInt(Call.getArgOperand(0), Word),
        load(Builder, offsetof(hf_word_log, fresh[0].first), Word));
    Value *OwnBytes =
        load(Builder, offsetof(hf_word_log, fresh[0].bytes), Word);
    Builder.CreateCondBr(Builder.CreateICmpULT(Within, OwnBytes), Done, Slow);
    if (IsNote)
      return;

    Builder.SetInsertPoint(Check);
    Value *Address = Call.getArgOperand(0);
    Value *Offset = Builder.CreateSub(
        Builder.CreatePtrToInt(Address, Word),
        Builder.CreatePtrToInt(
            load(Builder, offsetof(hf_word_log, base), Pointer), Word));
    Value *End = load(Builder, offsetof(hf_word_log, words_end), Word);
    if (More != 0) // no offset is added to: that of volatile memory might wrap
      End = Builder.CreateSub(End, Builder.getInt64(More * WordBytes));
    Builder.CreateCondBr(Builder.CreateICmpULT(Offset, End), Write, Own,
                         likely());

    Builder.SetInsertPoint(Write);
    Value *At = Next;
    uint64_t Before = 0;
    for (uint64_t Bytes : Pieces) {
      entry(Builder, At, Offset, Address, Before, Bytes);
      At = advanced(Builder, At, HF_WORD_ENTRY_BYTES);
      Before += Bytes;
    }
    count(Builder, At);
    Builder.CreateBr(Done);
  }

  /// The entries that the bytes get in line (4), each of as many as a load has;
  /// none: the call makes them.
  static SmallVector<uint64_t, 3> piecesOf(const CallInst &Call) {
    const auto *Bytes = dyn_cast<ConstantInt>(Call.getArgOperand(1));
    if (!Bytes || Bytes->getZExtValue() > 3 * WordBytes)
      return {};
    SmallVector<uint64_t, 3> Pieces;
    for (uint64_t Left = Bytes->getZExtValue(); Left != 0;
         Left -= Pieces.back())
      Pieces.push_back(std::min(WordBytes, bit_floor(Left)));
    if (Pieces.size() > divideCeil(Bytes->getZExtValue(), WordBytes))
      return {};
    return Pieces;
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
    auto *T = ArrayType::get(Word, sizeof(hf_word_log) / WordBytes);
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

  Value *advanced(IRBuilder<> &Builder, Value *From, uint64_t Bytes) {
    return Bytes == 0 ? From
                      : Builder.CreatePtrAdd(From, Builder.getInt64(Bytes));
  }

  /// One of the 'Bytes' behind the first 'Before' of those that are logged.
  void entry(IRBuilder<> &Builder, Value *At, Value *Offset, Value *Address,
             uint64_t Before, uint64_t Bytes) {
    const uint64_t Kind = (uint64_t{HF_OLD_WORD_KIND} + Bytes) << 56;
    Value *What =
        Before == 0
            ? Builder.CreateOr(Offset, Builder.getInt64(Kind))
            : Builder.CreateAdd(Offset, Builder.getInt64(Kind + Before));
    Value *Old = Builder.CreateAlignedLoad(
        Builder.getIntNTy(static_cast<unsigned>(8 * Bytes)),
        advanced(Builder, Address, Before), Align(1));
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
    if (IsNote || (!WordCall::piecesOf(*Call).empty() && !Repeats))
      Found.push_back({Call, IsNote});
  }
  for (auto [Call, IsNote] : Found)
    WordCall(*Call, IsNote).putInLine();
}

} // namespace holdfast
