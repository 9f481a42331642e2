// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Relocatable code (holdfast/abi/relocate_abi.h, docs/internals/relocation.md),
// for every function with a body:
//
// 1. Collect the accesses that may touch PM (Collector). What moves pointers is
//    translated: loads, stores, exchanges, vectors of them, copies known to
//    consist of pointers. Everything else of a word or more is checked: the
//    runtime refuses bytes that look like an address of the pool.
// 2. Insert the calls (Inserter), each behind a look at the address's upper
//    bits: where no relocated pool is, an access costs three instructions.
// 3. Drop what the function promised about memory: it calls the runtime now.
//
// Where a section's accesses go through a write buffer, this is done before they
// do: values are translated by the addresses that the source names, and the buffer
// gets the pool's bytes. What has to be looked at in memory, or copied there, is
// left to the engine's runtime, which knows where the bytes are.
//
// A value of 8 bytes is checked in line as well: next to none look like an
// address. It may be a floating-point number: where one shares a union with a
// pointer, the optimiser moves either as the number. Values of less than a word
// and strings are not looked at.
#include "transform/RelocateAccesses.h"
#include "analysis/Origin.h"
#include "transform/AccessWalk.h"
#include "transform/SplitCopies.h"

#include "holdfast/abi/relocate_abi.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#define DEBUG_TYPE "holdfast-relocate"

using namespace llvm;

/// On functions that were relocated before their accesses were buffered.
static constexpr StringLiteral Relocated = "holdfast.relocated";

STATISTIC(NumTranslated, "Accesses of pointers translated");
STATISTIC(NumChecked, "Other accesses checked");

namespace holdfast {

namespace {

constexpr uint64_t WordBytes = 8;

struct Access {
  enum Kind {
    LoadPointer,   ///< of a pointer or a vector of them: translate the result
    StorePointer,  ///< translate operand Operand
    LoadWord,      ///< of another value of 64 bits: check the result
    StoreWord,     ///< check operand Operand
    RawLoad,       ///< check the memory, before
    RawStore,      ///< check operand Operand, before
    Copy,          ///< of bytes: check, before
    CopyPointers,  ///< replace
    ExchangedWord, ///< the old value of a compare-exchange: check it
    ExchangedPointer,
  };
  Instruction *At;
  Kind What;
  Value *Address;
  unsigned Operand = 0;
  Value *From = nullptr;   ///< of copies
  Value *Length = nullptr; ///< of raw loads and copies
};

bool isPointerType(const Type *T) {
  const Type *Scalar = T->getScalarType();
  return Scalar->isPointerTy() && Scalar->getPointerAddressSpace() == 0 &&
         !isa<ScalableVectorType>(T);
}

/// Whether the value is never an address of a pool.
bool isNoPoolAddress(const Value *V) {
  return isa<ConstantPointerNull>(V) || isa<UndefValue>(V) ||
         isa<ConstantAggregateZero>(V) || isa<GlobalValue>(V) ||
         isa<AllocaInst>(V);
}

/// Whether an integer read by 'I' stands for a pointer, as clang writes atomic
/// pointers: every use turns it back, or a pointer replaces it.
bool becomesPointer(const Instruction &I) {
  if (isa<AtomicCmpXchgInst>(I))
    return isa<PtrToIntInst>(I.getOperand(2));
  return I.getType()->isIntegerTy(64) && !I.use_empty() &&
         all_of(I.users(), [](const User *U) { return isa<IntToPtrInst>(U); });
}

class Collector {
public:
  explicit Collector(const Module &M)
      : Layout(M.getDataLayout()), Context(M.getContext()) {}

  SmallVector<Access, 32> Found;

  void visit(const MemoryAccess &A) {
    switch (A.What) {
    case MemoryAccess::Single:
      return visitSingle(A);
    case MemoryAccess::Lanes:
    case MemoryAccess::Packed:
      return visitMasked(A);
    case MemoryAccess::Passed:
      return raw(*A.At, A.From, A.Length);
    case MemoryAccess::Bytes:
      return visitBytes(A);
    case MemoryAccess::Strings:
      return;
    }
  }

private:
  const DataLayout &Layout;
  LLVMContext &Context;

  Value *bytes(uint64_t Bytes) const {
    return ConstantInt::get(Type::getInt64Ty(Context), Bytes);
  }
  uint64_t storeBytes(Type *T) const {
    return Layout.getTypeStoreSize(T).getKnownMinValue();
  }
  bool mayHoldAddress(Type *T) const { return storeBytes(T) >= WordBytes; }
  /// Whether its bits are those of a 64-bit integer: also of a double, and of a
  /// vector of 8 bytes.
  bool isWord(Type *T) const {
    return CastInst::isBitCastable(T, Type::getInt64Ty(Context));
  }

  void add(Access A) {
    if (mayBePM(A.Address) || (A.From && mayBePM(A.From)))
      Found.push_back(A);
  }

  void result(Instruction &I, Value *Address, Type *T, Access::Kind Pointer,
              Access::Kind Word) {
    if (isPointerType(T) || becomesPointer(I))
      add({&I, Pointer, Address});
    else if (isWord(T))
      add({&I, Word, Address});
    else if (mayHoldAddress(T))
      raw(I, Address, bytes(storeBytes(T)));
  }

  void operand(Instruction &I, Value *Address, unsigned Operand) {
    Value *V = I.getOperand(Operand);
    Type *T = V->getType();
    if (isNoPoolAddress(V))
      return;
    if (isPointerType(T) || isa<PtrToIntInst>(V) ||
        (isa<AtomicCmpXchgInst>(I) && becomesPointer(I)))
      add({&I, Access::StorePointer, Address, Operand});
    else if (isa<Constant>(V) && !isa<ConstantExpr>(V))
      return; // a number written down in the program is no address of a pool
    else if (isWord(T))
      add({&I, Access::StoreWord, Address, Operand});
    else if (mayHoldAddress(T))
      add({&I, Access::RawStore, Address, Operand});
  }

  void raw(Instruction &I, Value *Address, Value *Length) {
    add({&I, Access::RawLoad, Address, 0, nullptr, Length});
  }

  static bool isSmall(const Value *Length) {
    const auto *Constant = dyn_cast<ConstantInt>(Length);
    return Constant && Constant->getZExtValue() < WordBytes;
  }

  void visitSingle(const MemoryAccess &A) {
    const bool Compares = isa<AtomicCmpXchgInst>(A.At);
    if (A.To)
      operand(*A.At, A.To, isa<StoreInst>(A.At) ? 0 : 1);
    if (Compares)
      operand(*A.At, A.To, 2);
    if (A.From)
      result(*A.At, A.From, A.Of,
             Compares ? Access::ExchangedPointer : Access::LoadPointer,
             Compares ? Access::ExchangedWord : Access::LoadWord);
  }

  void visitBytes(const MemoryAccess &A) {
    if (!A.From || isSmall(A.Length))
      return;
    if (!A.To)
      return raw(*A.At, A.From, A.Length);
    bool Pointers = isa<MemTransferInst>(A.At) &&
                    isPointerTag(A.At->getMetadata(LLVMContext::MD_tbaa));
    add({A.At, Pointers ? Access::CopyPointers : Access::Copy, A.To, 0, A.From,
         A.Length});
  }

  /// The runtime refuses addresses in such vectors: no target we build for has
  /// them.
  void visitMasked(const MemoryAccess &A) {
    if (A.isScattered())
      return Context.emitError(
          A.At, "-holdfast-relocatable does not know gathers and scatters: "
                "compile without -mavx2, or with -mno-gather -mno-scatter");
    if (!mayHoldAddress(A.Of))
      return;
    if (A.From)
      raw(*A.At, A.From, bytes(storeBytes(A.Of)));
    else
      add({A.At, Access::RawStore, A.To, 0});
  }
};

class Inserter {
public:
  /// 'Buffering': the engine through whose buffer the accesses will go; or null.
  explicit Inserter(Module &M, const EngineInfo *Buffering = nullptr)
      : M(M), Buffering(Buffering), Context(M.getContext()),
        Word(Type::getInt64Ty(Context)),
        Pointer(PointerType::getUnqual(Context)) {}

  void run(Access A) {
    A.Address = current(A.Address);
    A.From = current(A.From);
    switch (A.What) {
    case Access::LoadPointer:
      ++NumTranslated;
      return translateResult(A, A.At);
    case Access::ExchangedPointer:
      ++NumTranslated;
      return translateExchanged(A);
    case Access::StorePointer:
      ++NumTranslated;
      return translateOperand(A);
    case Access::LoadWord:
      ++NumChecked;
      return checkWord(A, A.At, behind(*A.At));
    case Access::ExchangedWord:
      ++NumChecked;
      return checkWord(A, nullptr, behind(*A.At));
    case Access::StoreWord:
      ++NumChecked;
      return checkWord(A, A.At->getOperand(A.Operand), A.At);
    case Access::RawLoad:
    case Access::RawStore:
    case Access::Copy:
      ++NumChecked;
      return checkBytes(A);
    case Access::CopyPointers:
      ++NumTranslated;
      return replaceCopy(A);
    }
  }

private:
  Module &M;
  const EngineInfo *Buffering;
  LLVMContext &Context;
  Type *Word;
  Type *Pointer;
  StringMap<Constant *> Places;
  DenseMap<Value *, Value *> Translated; ///< what a load's users have now

  Value *current(Value *V) const {
    Value *New = Translated.lookup(V);
    return New ? New : V;
  }

  /// None of these ends a block.
  static Instruction *behind(Instruction &I) { return I.getNextNode(); }

  /// Returns "file:line" of the access, for people.
  Constant *placeOf(const Instruction &I) {
    std::string Text = I.getFunction()->getName().str();
    if (const DILocation *Location = I.getDebugLoc().get())
      Text = (Location->getFilename() + ":" + Twine(Location->getLine())).str();
    Constant *&Known = Places[Text];
    if (!Known) {
      Constant *Bytes = ConstantDataArray::getString(Context, Text);
      auto *Global =
          new GlobalVariable(M, Bytes->getType(), /*isConstant=*/true,
                             GlobalValue::PrivateLinkage, Bytes, "hf_place");
      Global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
      Known = Global;
    }
    return Known;
  }

  CallInst *call(IRBuilder<> &Builder, StringRef Name, Type *Result,
                 ArrayRef<Value *> Arguments) {
    SmallVector<Type *, 4> Types;
    for (Value *Argument : Arguments)
      Types.push_back(Argument->getType());
    CallInst *Call = Builder.CreateCall(
        M.getOrInsertFunction(Name, FunctionType::get(Result, Types, false)),
        Arguments);
    Call->setDoesNotThrow();
    return Call;
  }

  /// The same of a function that looks at memory: where the accesses go through a
  /// buffer, the engine has one of its own.
  CallInst *callWithMemory(IRBuilder<> &Builder, StringRef Step,
                           ArrayRef<Value *> Arguments) {
    return call(Builder,
                Buffering ? Buffering->callee("relocated_" + Step.str())
                          : "hf_relocated_" + Step.str(),
                Builder.getVoidTy(), Arguments);
  }

  Value *isRelocated(IRBuilder<> &Builder, Value *Address) {
    Value *Bits = Builder.CreateLShr(Builder.CreatePtrToInt(Address, Word),
                                     HF_RELOCATED_SHIFT);
    return Builder.CreateICmpEQ(Bits, Builder.getInt64(HF_RELOCATED_BITS));
  }

  /// Translates 'V', each lane of a vector, by 'Name' before 'Before'.
  PHINode *translated(const Access &A, StringRef Name, Value *V,
                      Instruction *Before) {
    AccessBuilder Builder(*Before, *A.At);
    Value *Condition = isRelocated(Builder, A.Address);
    BasicBlock *Head = Before->getParent();
    Instruction *Then = Builder.enterIf(Condition, *Before);
    Constant *Where = placeOf(*A.At);
    Value *New = V;
    if (auto *Vector = dyn_cast<FixedVectorType>(V->getType())) {
      for (unsigned Lane = 0; Lane != Vector->getNumElements(); ++Lane) {
        Value *Address =
            Builder.CreatePtrAdd(A.Address, Builder.getInt64(WordBytes * Lane));
        Value *Old = Builder.CreateExtractElement(V, Lane);
        New = Builder.CreateInsertElement(
            New, call(Builder, Name, Pointer, {Address, Old, Where}), Lane);
      }
    } else {
      Value *Old =
          V->getType()->isPointerTy() ? V : Builder.CreateIntToPtr(V, Pointer);
      New = call(Builder, Name, Pointer, {A.Address, Old, Where});
      if (!V->getType()->isPointerTy())
        New = Builder.CreatePtrToInt(New, V->getType());
    }
    BasicBlock *Tail = Before->getParent();
    PHINode *Both = PHINode::Create(V->getType(), 2, "", Tail->begin());
    Both->addIncoming(V, Head);
    Both->addIncoming(New, Then->getParent());
    return Both;
  }

  void translateResult(const Access &A, Value *V) {
    SmallVector<Use *, 8> Uses;
    for (Use &U : V->uses())
      Uses.push_back(&U);
    PHINode *Both = translated(A, "hf_relocated_load", V, behind(*A.At));
    for (Use *U : Uses)
      U->set(Both);
    Translated[V] = Both;
  }

  /// The result is a pair of the old value and the verdict.
  void translateExchanged(const Access &A) {
    SmallVector<Use *, 8> Uses;
    for (Use &U : A.At->uses())
      Uses.push_back(&U);
    Instruction *Before = behind(*A.At);
    Value *Old = IRBuilder<>(Before).CreateExtractValue(A.At, 0);
    PHINode *Both = translated(A, "hf_relocated_load", Old, Before);
    Value *Pair = IRBuilder<>(Before).CreateInsertValue(A.At, Both, 0);
    for (Use *U : Uses)
      U->set(Pair);
  }

  void translateOperand(const Access &A) {
    PHINode *Both =
        translated(A, "hf_relocated_store", A.At->getOperand(A.Operand), A.At);
    A.At->setOperand(A.Operand, Both);
  }

  /// Checks the word loaded or to be stored; where 'V' is null, the one in a
  /// compare-exchange's result.
  void checkWord(const Access &A, Value *V, Instruction *Before) {
    AccessBuilder Builder(*Before, *A.At);
    bool Stored = A.What == Access::StoreWord;
    if (!V)
      V = Builder.CreateExtractValue(A.At, 0);
    V = Builder.CreateBitCast(V, Word);
    Value *Looks =
        Stored ? Builder.CreateICmpEQ(Builder.CreateLShr(V, HF_RELOCATED_SHIFT),
                                      Builder.getInt64(HF_RELOCATED_BITS))
               : nullptr;
    // The stored value may also be a canonical address, which the file would take
    // for its own.
    Value *Canonical = Builder.CreateICmpULT(
        Builder.CreateSub(V, Builder.getInt64(HF_CANONICAL_LOW)),
        Builder.getInt64(HF_CANONICAL_HIGH - HF_CANONICAL_LOW));
    Looks = Looks ? Builder.CreateOr(Looks, Canonical) : Canonical;
    Value *Condition =
        Builder.CreateAnd(isRelocated(Builder, A.Address), Looks);
    Builder.enterIf(Condition, *Before);
    Constant *Where = placeOf(*A.At);
    if (Stored)
      call(Builder, "hf_relocated_store_word", Builder.getVoidTy(),
           {A.Address, V, Where});
    else
      callWithMemory(Builder, "raw_load",
                     {A.Address, Builder.getInt64(WordBytes), Where});
  }

  /// Makes the place where a value is put for the runtime to look at: next to
  /// none need it.
  static AllocaInst *spill(Function &F, Type *T) {
    return IRBuilder<>(&*F.getEntryBlock().begin()).CreateAlloca(T);
  }

  void checkBytes(const Access &A) {
    AccessBuilder Builder(*A.At, *A.At);
    Value *Condition = isRelocated(Builder, A.Address);
    if (A.What == Access::Copy)
      Condition = Builder.CreateOr(Condition, isRelocated(Builder, A.From));
    Value *Stored =
        A.What == Access::RawStore ? A.At->getOperand(A.Operand) : nullptr;
    AllocaInst *Bytes =
        Stored ? spill(*A.At->getFunction(), Stored->getType()) : nullptr;
    Builder.enterIf(Condition, *A.At);
    Constant *Where = placeOf(*A.At);
    Value *Length =
        A.Length ? Builder.CreateZExtOrTrunc(A.Length, Word) : nullptr;
    if (A.What == Access::Copy) {
      callWithMemory(Builder, "copy", {A.Address, A.From, Length, Where});
    } else if (!Stored) {
      callWithMemory(Builder, "raw_load", {A.Address, Length, Where});
    } else {
      Builder.CreateStore(Stored, Bytes);
      uint64_t Count = M.getDataLayout()
                           .getTypeStoreSize(Stored->getType())
                           .getKnownMinValue();
      call(Builder, "hf_relocated_raw_store", Builder.getVoidTy(),
           {A.Address, Bytes, Builder.getInt64(Count), Where});
    }
  }

  void replaceCopy(const Access &A) {
    AccessBuilder Builder(*A.At, *A.At);
    DebugLoc Location = Builder.getCurrentDebugLocation();
    Value *Condition = Builder.CreateOr(isRelocated(Builder, A.Address),
                                        isRelocated(Builder, A.From));
    Instruction *Then = nullptr, *Else = nullptr;
    SplitBlockAndInsertIfThenElse(
        Condition, A.At, &Then, &Else,
        MDBuilder(Context).createUnlikelyBranchWeights());
    Builder.SetInsertPoint(Then);
    Builder.SetCurrentDebugLocation(Location);
    callWithMemory(Builder, "copy_pointers",
                   {A.Address, A.From,
                    Builder.CreateZExtOrTrunc(A.Length, Word), placeOf(*A.At)});
    A.At->moveBefore(*Else->getParent(), Else->getIterator());
  }
};

SmallVector<Access, 32> collect(Function &F, const TargetLibraryInfo &Library) {
  Collector C(*F.getParent());
  for (Instruction &I : instructions(F))
    forEachAccess(I, Library, [&](const MemoryAccess &A) { C.visit(A); });
  return std::move(C.Found);
}

} // namespace

PreservedAnalyses RelocateAccessesPass::run(Module &M,
                                            ModuleAnalysisManager &MAM) {
  Inserter Insert(M);
  return rewriteAccesses<Access>(
      M, MAM,
      [](Function &F, const TargetLibraryInfo &Library) {
        return F.hasFnAttribute(Relocated) ? SmallVector<Access, 32>()
                                           : collect(F, Library);
      },
      [&](ArrayRef<Access> Accesses) {
        for (const Access &A : Accesses)
          Insert.run(A);
      });
}

void relocateBuffered(ArrayRef<Function *> Instances,
                      FunctionAnalysisManager &FAM, const EngineInfo &Engine) {
  if (Instances.empty())
    return;
  Inserter Insert(*Instances.front()->getParent(), &Engine);
  rewriteAccesses<Access>(Instances, FAM, collect,
                          [&](ArrayRef<Access> Accesses) {
                            for (const Access &A : Accesses)
                              Insert.run(A);
                          });
  for (Function *F : Instances)
    F->addFnAttr(Relocated);
}

} // namespace holdfast
