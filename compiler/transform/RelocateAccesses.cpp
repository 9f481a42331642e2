// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Relocatable code (holdfast/abi/relocate_abi.h, docs/internals/relocation.md).
//
// First (SplitCopies), on what clang has made: a copy of a struct whose type
// metadata names pointers becomes loads and stores of those and copies of what
// lies between. Later the optimiser would make integers of them.
//
// Last (RelocateAccesses), for every function with a body:
//
// 1. Collect the accesses that may touch PM (Collector). What moves pointers
//    is translated: loads, stores, exchanges, vectors of them, copies known to
//    consist of pointers. Everything else of a word or more is checked: the
//    runtime refuses bytes that look like an address of the pool.
// 2. Insert the calls (Inserter), each behind a look at the address's upper
//    bits: where no relocated pool is, an access costs three instructions.
// 3. Drop what the function promised about memory: it calls the runtime now.
//
// An 8-byte integer is checked in line as well: next to none look like an
// address. Integers of less than a word, floating-point numbers and strings are
// not looked at.
#include "transform/RelocateAccesses.h"
#include "analysis/LibraryAccesses.h"
#include "analysis/Origin.h"
#include "transform/InsertCalls.h"

#include "holdfast/abi/relocate_abi.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Instrumentation.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

#define DEBUG_TYPE "holdfast-relocate"

using namespace llvm;

STATISTIC(NumSplit, "Copies of structs split at their pointers");
STATISTIC(NumTranslated, "Accesses of pointers translated");
STATISTIC(NumChecked, "Other accesses checked");

namespace holdfast {

namespace {

constexpr uint64_t WordBytes = 8;
constexpr StringLiteral Mark = "holdfast.relocatable";

//===-- SplitCopies -------------------------------------------------------===//

/// Whether an access tag of type-based alias analysis says "pointer".
bool isPointerTag(const MDNode *Tag) {
  if (!Tag || Tag->getNumOperands() < 3)
    return false;
  const auto *Access = dyn_cast_or_null<MDNode>(Tag->getOperand(1));
  if (!Access || Access->getNumOperands() == 0)
    return false;
  const auto *Name = dyn_cast<MDString>(Access->getOperand(0));
  return Name && Name->getString() == "any pointer";
}

struct PointerField {
  uint64_t Offset;
  MDNode *Tag;
};

/// The pointers among the fields that a copy's metadata lists, in order.
SmallVector<PointerField, 8> pointersIn(const MDNode &Fields, uint64_t Bytes) {
  SmallVector<PointerField, 8> Found;
  uint64_t End = 0;
  for (unsigned I = 0; I + 3 <= Fields.getNumOperands(); I += 3) {
    auto Number = [&](unsigned Operand) {
      return mdconst::extract<ConstantInt>(Fields.getOperand(Operand))
          ->getZExtValue();
    };
    auto *Tag = dyn_cast_or_null<MDNode>(Fields.getOperand(I + 2));
    if (!isPointerTag(Tag))
      continue;
    for (uint64_t At = Number(I); At + WordBytes <= Number(I) + Number(I + 1);
         At += WordBytes) {
      if (At < End || At + WordBytes > Bytes)
        continue; // fields of a union: whoever reads the bytes checks them
      Found.push_back({At, Tag});
      End = At + WordBytes;
    }
  }
  return Found;
}

/// Copies bytes, the pointers among them as pointers.
void copyInPieces(IRBuilderBase &Builder, Value *To, Align ToAlign, Value *From,
                  Align FromAlign, uint64_t Bytes,
                  ArrayRef<PointerField> Fields) {
  auto At = [&](Value *Base, uint64_t Offset) {
    return Offset == 0
               ? Base
               : Builder.CreateInBoundsPtrAdd(Base, Builder.getInt64(Offset));
  };
  auto CopyBetween = [&](uint64_t Begin, uint64_t End) {
    if (Begin < End)
      Builder.CreateMemCpy(At(To, Begin), commonAlignment(ToAlign, Begin),
                           At(From, Begin), commonAlignment(FromAlign, Begin),
                           End - Begin);
  };
  uint64_t Done = 0;
  for (const PointerField &Field : Fields) {
    CopyBetween(Done, Field.Offset);
    LoadInst *Value =
        Builder.CreateAlignedLoad(Builder.getPtrTy(), At(From, Field.Offset),
                                  commonAlignment(FromAlign, Field.Offset));
    StoreInst *Store = Builder.CreateAlignedStore(
        Value, At(To, Field.Offset), commonAlignment(ToAlign, Field.Offset));
    if (Field.Tag) {
      Value->setMetadata(LLVMContext::MD_tbaa, Field.Tag);
      Store->setMetadata(LLVMContext::MD_tbaa, Field.Tag);
    }
    Done = Field.Offset + WordBytes;
  }
  CopyBetween(Done, Bytes);
}

/// Replaces the copy. Its memory does not overlap, or is the same.
void split(MemCpyInst &Copy, uint64_t Bytes, ArrayRef<PointerField> Fields) {
  IRBuilder<> Builder(&Copy);
  copyInPieces(Builder, Copy.getDest(), Copy.getDestAlign().valueOrOne(),
               Copy.getSource(), Copy.getSourceAlign().valueOrOne(), Bytes,
               Fields);
  Copy.eraseFromParent();
  ++NumSplit;
}

void addPointersIn(Type *T, uint64_t Offset, const DataLayout &Layout,
                   SmallVectorImpl<PointerField> &Found) {
  if (T->isPointerTy()) {
    Found.push_back({Offset, nullptr});
  } else if (auto *Struct = dyn_cast<StructType>(T)) {
    const StructLayout *Fields = Layout.getStructLayout(Struct);
    for (unsigned I = 0; I != Struct->getNumElements(); ++I)
      addPointersIn(Struct->getElementType(I),
                    Offset + Fields->getElementOffset(I), Layout, Found);
  } else if (auto *Array = dyn_cast<ArrayType>(T)) {
    uint64_t Bytes = Layout.getTypeAllocSize(Array->getElementType());
    for (uint64_t I = 0; I != Array->getNumElements(); ++I)
      addPointersIn(Array->getElementType(), Offset + I * Bytes, Layout, Found);
  }
}

void splitCopies(Function &F) {
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Copy = dyn_cast<MemCpyInst>(&I);
    if (!Copy || Copy->isVolatile())
      continue;
    auto *Length = dyn_cast<ConstantInt>(Copy->getLength());
    MDNode *Fields = Copy->getMetadata(LLVMContext::MD_tbaa_struct);
    if (!Length || !Fields)
      continue;
    auto Found = pointersIn(*Fields, Length->getZExtValue());
    if (!Found.empty())
      split(*Copy, Length->getZExtValue(), Found);
  }
}

//===-- RelocateAccesses --------------------------------------------------===//

struct Access {
  enum Kind {
    LoadPointer,   ///< of a pointer or a vector of them: translate the result
    StorePointer,  ///< translate operand Operand
    LoadWord,      ///< of a 64-bit integer: check the result
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

/// Never an address of a pool.
bool isNoPoolAddress(const Value *V) {
  return isa<ConstantPointerNull>(V) || isa<UndefValue>(V) ||
         isa<ConstantAggregateZero>(V) || isa<GlobalValue>(V) ||
         isa<AllocaInst>(V);
}

/// Whether an integer read by 'I' is a pointer by another name, as clang makes
/// them of atomic ones: all it is used for is to be turned back, or a pointer
/// is put in its place.
bool becomesPointer(const Instruction &I) {
  if (isa<AtomicCmpXchgInst>(I))
    return isa<PtrToIntInst>(I.getOperand(2));
  return I.getType()->isIntegerTy(64) && !I.use_empty() &&
         all_of(I.users(), [](const User *U) { return isa<IntToPtrInst>(U); });
}

class Collector {
public:
  Collector(Function &F, const TargetLibraryInfo &Library)
      : Layout(F.getDataLayout()), Context(F.getContext()), Library(Library) {}

  SmallVector<Access, 32> Found;

  void visit(Instruction &I) {
    if (auto *Load = dyn_cast<LoadInst>(&I))
      result(I, Load->getPointerOperand(), Load->getType(), Access::LoadPointer,
             Access::LoadWord);
    else if (auto *Store = dyn_cast<StoreInst>(&I))
      operand(I, Store->getPointerOperand(), 0);
    else if (auto *Update = dyn_cast<AtomicRMWInst>(&I)) {
      operand(I, Update->getPointerOperand(), 1);
      result(I, Update->getPointerOperand(), Update->getType(),
             Access::LoadPointer, Access::LoadWord);
    } else if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I)) {
      operand(I, Exchange->getPointerOperand(), 1);
      operand(I, Exchange->getPointerOperand(), 2);
      result(I, Exchange->getPointerOperand(),
             Exchange->getCompareOperand()->getType(), Access::ExchangedPointer,
             Access::ExchangedWord);
    } else if (auto *Call = dyn_cast<CallBase>(&I))
      visitCall(*Call);
  }

private:
  const DataLayout &Layout;
  LLVMContext &Context;
  const TargetLibraryInfo &Library;

  Value *bytes(uint64_t Bytes) const {
    return ConstantInt::get(Type::getInt64Ty(Context), Bytes);
  }
  uint64_t bytesOf(Type *T) const {
    return Layout.getTypeStoreSize(T).getKnownMinValue();
  }
  bool mayHoldAddress(Type *T) const {
    return bytesOf(T) >= WordBytes && !T->isFPOrFPVectorTy();
  }

  void add(Access A) {
    if (mayBePM(A.Address) || (A.From && mayBePM(A.From)))
      Found.push_back(A);
  }

  void result(Instruction &I, Value *Address, Type *T, Access::Kind Pointer,
              Access::Kind Word) {
    if (isPointerType(T) || becomesPointer(I))
      add({&I, Pointer, Address});
    else if (T->isIntegerTy(64))
      add({&I, Word, Address});
    else if (mayHoldAddress(T))
      raw(I, Address, bytes(bytesOf(T)));
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
    else if (T->isIntegerTy(64))
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

  void visitCall(CallBase &Call) {
    for (unsigned A = 0; A != Call.arg_size(); ++A)
      if (Call.isByValArgument(A)) // the call copies it
        raw(Call, Call.getArgOperand(A),
            bytes(bytesOf(Call.getParamByValType(A))));
    if (auto *Copy = dyn_cast<AnyMemTransferInst>(&Call)) {
      bool Pointers = isa<MemTransferInst>(Copy) &&
                      isPointerTag(Copy->getMetadata(LLVMContext::MD_tbaa));
      if (!isSmall(Copy->getLength()))
        add({&Call, Pointers ? Access::CopyPointers : Access::Copy,
             Copy->getRawDest(), 0, Copy->getRawSource(), Copy->getLength()});
    } else if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&Call)) {
      visitMasked(*Intrinsic);
    } else if (const LibraryCall *Shape = findLibraryCall(Call, Library)) {
      visitLibraryCall(Call, *Shape);
    }
  }

  /// Refused where they meet an address: no target we build for has them.
  void visitMasked(IntrinsicInst &Call) {
    auto Operand = [&](unsigned A) { return Call.getArgOperand(A); };
    switch (Call.getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_expandload:
      if (mayHoldAddress(Call.getType()))
        raw(Call, Operand(0), bytes(bytesOf(Call.getType())));
      return;
    case Intrinsic::masked_store:
    case Intrinsic::masked_compressstore:
      if (mayHoldAddress(Operand(0)->getType()))
        add({&Call, Access::RawStore, Operand(1), 0});
      return;
    case Intrinsic::masked_gather:
    case Intrinsic::masked_scatter:
      Call.getContext().emitError(
          &Call, "-holdfast-relocatable does not know gathers and scatters: "
                 "compile without -mavx2, or with -mno-gather -mno-scatter");
      return;
    default:
      return;
    }
  }

  void visitLibraryCall(CallBase &Call, const LibraryCall &Shape) {
    if (Shape.Length < 0 || Shape.ReadsStrings)
      return;
    Value *Length = Call.getArgOperand(Shape.Length);
    if (isSmall(Length))
      return;
    for (int A : Shape.Reads) {
      if (A < 0)
        continue;
      if (Shape.Writes >= 0)
        add({&Call, Access::Copy, Call.getArgOperand(Shape.Writes), 0,
             Call.getArgOperand(A), Length});
      else
        raw(Call, Call.getArgOperand(A), Length);
    }
  }
};

class Inserter {
public:
  explicit Inserter(Module &M)
      : M(M), Context(M.getContext()), Word(Type::getInt64Ty(Context)),
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

  void at(InstrumentationIRBuilder &Builder, const Access &A) {
    Builder.SetCurrentDebugLocation(A.At->getDebugLoc());
    InstrumentationIRBuilder::ensureDebugInfo(Builder, *A.At->getFunction());
  }

  /// "file:line" of the access, for people.
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

  Value *isRelocated(IRBuilder<> &Builder, Value *Address) {
    Value *Bits = Builder.CreateLShr(Builder.CreatePtrToInt(Address, Word),
                                     HF_RELOCATED_SHIFT);
    return Builder.CreateICmpEQ(Bits, Builder.getInt64(HF_RELOCATED_BITS));
  }

  Instruction *branch(Value *Condition, Instruction *Before) {
    return SplitBlockAndInsertIfThen(
        Condition, Before, /*Unreachable=*/false,
        MDBuilder(Context).createUnlikelyBranchWeights());
  }

  /// 'V' as 'Name' translates it, before 'Before'; each lane of a vector.
  PHINode *translated(const Access &A, StringRef Name, Value *V,
                      Instruction *Before) {
    InstrumentationIRBuilder Builder(Before);
    at(Builder, A);
    DebugLoc Location = Builder.getCurrentDebugLocation();
    Value *Condition = isRelocated(Builder, A.Address);
    BasicBlock *Head = Before->getParent();
    Instruction *Then = branch(Condition, Before);
    Builder.SetInsertPoint(Then);
    Builder.SetCurrentDebugLocation(Location);
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

  /// 'V': the word loaded or to be stored; null: in a compare-exchange's
  /// result.
  void checkWord(const Access &A, Value *V, Instruction *Before) {
    InstrumentationIRBuilder Builder(Before);
    at(Builder, A);
    DebugLoc Location = Builder.getCurrentDebugLocation();
    bool Stored = A.What == Access::StoreWord;
    if (!V)
      V = Builder.CreateExtractValue(A.At, 0);
    Value *Looks =
        Stored ? Builder.CreateICmpEQ(Builder.CreateLShr(V, HF_RELOCATED_SHIFT),
                                      Builder.getInt64(HF_RELOCATED_BITS))
               : nullptr;
    // What is stored may also be an address that the file would take for its
    // own: a canonical one.
    Value *Canonical = Builder.CreateICmpULT(
        Builder.CreateSub(V, Builder.getInt64(HF_CANONICAL_LOW)),
        Builder.getInt64(HF_CANONICAL_HIGH - HF_CANONICAL_LOW));
    Looks = Looks ? Builder.CreateOr(Looks, Canonical) : Canonical;
    Value *Condition =
        Builder.CreateAnd(isRelocated(Builder, A.Address), Looks);
    Instruction *Then = branch(Condition, Before);
    Builder.SetInsertPoint(Then);
    Builder.SetCurrentDebugLocation(Location);
    Constant *Where = placeOf(*A.At);
    if (Stored)
      call(Builder, "hf_relocated_store_word", Builder.getVoidTy(),
           {A.Address, V, Where});
    else
      call(Builder, "hf_relocated_raw_load", Builder.getVoidTy(),
           {A.Address, Builder.getInt64(WordBytes), Where});
  }

  /// Where a value is put for the runtime to look at: next to none need it.
  static AllocaInst *spill(Function &F, Type *T) {
    return IRBuilder<>(&*F.getEntryBlock().begin()).CreateAlloca(T);
  }

  void checkBytes(const Access &A) {
    InstrumentationIRBuilder Builder(A.At);
    at(Builder, A);
    DebugLoc Location = Builder.getCurrentDebugLocation();
    Value *Condition = isRelocated(Builder, A.Address);
    if (A.What == Access::Copy)
      Condition = Builder.CreateOr(Condition, isRelocated(Builder, A.From));
    Value *Stored =
        A.What == Access::RawStore ? A.At->getOperand(A.Operand) : nullptr;
    AllocaInst *Bytes =
        Stored ? spill(*A.At->getFunction(), Stored->getType()) : nullptr;
    Instruction *Then = branch(Condition, A.At);
    Builder.SetInsertPoint(Then);
    Builder.SetCurrentDebugLocation(Location);
    Constant *Where = placeOf(*A.At);
    Value *Length =
        A.Length ? Builder.CreateZExtOrTrunc(A.Length, Word) : nullptr;
    if (A.What == Access::Copy) {
      call(Builder, "hf_relocated_copy", Builder.getVoidTy(),
           {A.Address, A.From, Length, Where});
    } else if (!Stored) {
      call(Builder, "hf_relocated_raw_load", Builder.getVoidTy(),
           {A.Address, Length, Where});
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
    InstrumentationIRBuilder Builder(A.At);
    at(Builder, A);
    DebugLoc Location = Builder.getCurrentDebugLocation();
    Value *Condition = Builder.CreateOr(isRelocated(Builder, A.Address),
                                        isRelocated(Builder, A.From));
    Instruction *Then = nullptr, *Else = nullptr;
    SplitBlockAndInsertIfThenElse(
        Condition, A.At, &Then, &Else,
        MDBuilder(Context).createUnlikelyBranchWeights());
    Builder.SetInsertPoint(Then);
    Builder.SetCurrentDebugLocation(Location);
    call(Builder, "hf_relocated_copy_pointers", Builder.getVoidTy(),
         {A.Address, A.From, Builder.CreateZExtOrTrunc(A.Length, Word),
          placeOf(*A.At)});
    A.At->moveBefore(Else);
  }
};

bool isTranslated(const Function &F) {
  return !F.isDeclaration() && !F.hasAvailableExternallyLinkage() &&
         !F.hasFnAttribute(Attribute::Naked) &&
         !F.getName().starts_with("hf_trace_");
}

} // namespace

bool isRelocatable(const Module &M) { return M.getNamedMetadata(Mark); }

void copyByType(IRBuilderBase &Builder, Value *To, Align ToAlign, Value *From,
                Align FromAlign, Type *T, const DataLayout &Layout) {
  SmallVector<PointerField, 8> Found;
  addPointersIn(T, 0, Layout, Found);
  copyInPieces(Builder, To, ToAlign, From, FromAlign,
               Layout.getTypeStoreSize(T), Found);
}

PreservedAnalyses SplitCopiesPass::run(Module &M, ModuleAnalysisManager &) {
  M.getOrInsertNamedMetadata(Mark);
  for (Function &F : M)
    splitCopies(F);
  return PreservedAnalyses::none();
}

PreservedAnalyses RelocateAccessesPass::run(Module &M,
                                            ModuleAnalysisManager &MAM) {
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  SmallVector<std::pair<Function *, SmallVector<Access, 32>>, 32> All;
  for (Function &F : M) {
    if (!isTranslated(F))
      continue;
    Collector C(F, FAM.getResult<TargetLibraryAnalysis>(F));
    for (Instruction &I : instructions(F))
      C.visit(I);
    if (!C.Found.empty())
      All.emplace_back(&F, std::move(C.Found));
  }
  if (All.empty())
    return PreservedAnalyses::all();

  Inserter Inserter(M);
  for (auto &[F, Accesses] : All) {
    // A block that is split must not leave an alloca outside the entry block.
    BasicBlock &Entry = F->getEntryBlock();
    PrepareToSplitEntryBlock(Entry, Entry.getFirstNonPHIOrDbgOrAlloca());
    for (const Access &A : Accesses)
      Inserter.run(A);
    dropMemoryPromises(*F);
  }
  return PreservedAnalyses::none();
}

} // namespace holdfast
