// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Trace mode (holdfast/abi/trace_abi.h), for every function with a body:
//
// 1. Collect the reports to make (Collector). A load is reported before it,
//    since the checker may yet decide what it will see; a store after it, since
//    the checker takes the new bytes from memory. A locked operation, which a
//    sequentially consistent store is on x86, is both, and a fence. Accesses of
//    locals, globals and thread-local variables are left out: PM is mapped.
// 2. Insert them (Inserter), each behind a comparison with the watched region,
//    so that an access elsewhere costs no call. A single access is compared by
//    its first byte; a range is reported when any of its bytes may be watched.
//    A report has the debug location of its access and is not merged with
//    others, so that its return address names the access's line.
// 3. Drop what the function promised about memory: it calls the checker now.
//
// Cache-line write-backs, sfence and non-temporal stores are reported as well, as
// intrinsics and as inline assembly. The persistence layer reports its own. Other
// inline assembly is reported by its memory operands.
//
// Two options add reports. -holdfast-trace-turns reports before each store, where
// a checker may let another thread run: behind the store it would be too late for
// the load that the store rests on. -holdfast-trace-locked reports locked
// operations as the fences that they are on x86. The library is built without it,
// because it must not rely on them.
#include "transform/TraceAccesses.h"
#include "analysis/Origin.h"
#include "transform/AccessWalk.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

#define DEBUG_TYPE "holdfast-trace"

using namespace llvm;

STATISTIC(NumLoads, "Loads traced");
STATISTIC(NumStores, "Stores traced");
STATISTIC(NumLocked, "Locked operations traced");
STATISTIC(NumFences, "Fences traced");
STATISTIC(NumElsewhere, "Accesses that cannot touch PM");

namespace holdfast {

namespace {

cl::opt<bool> Turns("holdfast-trace-turns",
                    cl::desc("Report each store before it is made"));
cl::opt<bool> LockedFences("holdfast-trace-locked",
                           cl::desc("Report locked operations as fences"));

enum class Event {
  Load,
  StringLoad,
  Store,
  StringStore,
  NonTemporal,
  Locked,
  WriteBack,  ///< clwb, clflushopt
  WriteBack1, ///< clflush: waits for nothing
  Fence
};

struct Report {
  Instruction *At;
  Event What;
  Value *Address = nullptr; ///< or a vector of addresses
  Value *Length = nullptr;  ///< in bytes; most bytes, of a string
  bool IsRange = false;     ///< may begin before the watched region
  Value *Mask = nullptr;    ///< of vectors
  unsigned Lane = 0;

  bool isBefore() const {
    return What == Event::Load || What == Event::StringLoad;
  }
};

class Collector {
public:
  explicit Collector(const Function &F)
      : Layout(F.getDataLayout()), Context(F.getContext()),
        ReportsItself(F.getName().starts_with("_ZN2hf7persist")) {}

  SmallVector<Report, 32> Found;

  void visit(const MemoryAccess &A) {
    switch (A.What) {
    case MemoryAccess::Single:
      return visitSingle(A);
    case MemoryAccess::Lanes:
      return visitLanes(A);
    case MemoryAccess::Packed:
    case MemoryAccess::Passed:
    case MemoryAccess::Bytes:
    case MemoryAccess::Strings:
      return visitRange(A);
    }
  }

  /// Reports what is no access that the walk knows.
  void visitOther(Instruction &I) {
    auto *Call = dyn_cast<CallBase>(&I);
    if (auto *Fence = dyn_cast<FenceInst>(&I))
      visitFence(*Fence);
    else if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&I))
      visitIntrinsic(*Intrinsic);
    else if (auto *Assembly =
                 Call ? dyn_cast<InlineAsm>(Call->getCalledOperand()) : nullptr)
      visitAssembly(*Call, *Assembly);
  }

private:
  const DataLayout &Layout;
  LLVMContext &Context;
  const bool ReportsItself; ///< the persistence layer

  Value *bytes(uint64_t Bytes) const {
    return ConstantInt::get(Type::getInt64Ty(Context), Bytes);
  }
  Value *bytesOf(Type *T) const {
    return bytes(Layout.getTypeStoreSize(T).getKnownMinValue());
  }

  void add(Report R) {
    auto *Constant = dyn_cast_or_null<ConstantInt>(R.Length);
    if (Constant && Constant->isZero())
      return;
    if (!mayBePM(R.Address)) {
      ++NumElsewhere;
      return;
    }
    Found.push_back(R);
  }

  void one(const MemoryAccess &A, Event What) {
    add({A.At, What, A.To ? A.To : A.From, A.Length});
  }
  void lockedFence(Instruction &I) {
    if (LockedFences)
      Found.push_back({&I, Event::Fence});
  }

  /// The checker follows whole words: of one that is stored in part it must
  /// know the rest.
  void nonTemporal(Instruction &I, Value *Address, uint64_t Bytes) {
    if (ReportsItself)
      return;
    if (Bytes % 8 != 0)
      add({&I, Event::Load, Address, bytes(Bytes)});
    add({&I, Event::NonTemporal, Address, bytes(Bytes)});
  }
  void writeBack(Instruction &I, Value *Address, bool WaitsForFence) {
    if (!ReportsItself)
      add({&I, WaitsForFence ? Event::WriteBack : Event::WriteBack1, Address,
           bytes(1)});
  }
  void fence(Instruction &I) {
    if (!ReportsItself)
      Found.push_back({&I, Event::Fence});
  }

  /// Reports what the assembly's words say, and its memory operands.
  void visitAssembly(CallBase &Call, const InlineAsm &Assembly) {
    StringRef Text = Assembly.getAsmString();
    const bool NotTemporal = Text.contains("movnt");
    Value *First = nullptr;
    unsigned A = 0;
    for (const InlineAsm::ConstraintInfo &C : Assembly.ParseConstraints()) {
      if (C.Type == InlineAsm::isClobber || C.Type == InlineAsm::isLabel ||
          (C.Type == InlineAsm::isOutput && !C.isIndirect))
        continue;
      if (A == Call.arg_size())
        break;
      Value *Operand = Call.getArgOperand(A);
      if (!First && Operand->getType()->isPointerTy())
        First = Operand;
      if (Type *T = C.isIndirect ? Call.getParamElementType(A) : nullptr;
          T && T->isSized()) {
        if (C.Type == InlineAsm::isInput)
          add({&Call, Event::Load, Operand, bytesOf(T)});
        else if (!NotTemporal)
          add({&Call, Event::Store, Operand, bytesOf(T)});
      }
      ++A;
    }
    if (First && NotTemporal)
      nonTemporal(Call, First, Text.contains("movnti") ? 8 : 16);
    if (First && (Text.contains("clwb") || Text.contains("xsaveopt")))
      writeBack(Call, First, /*WaitsForFence=*/true);
    else if (First && Text.contains("clflush"))
      writeBack(Call, First,
                Text.contains("clflushopt") || Text.contains("0x66"));
    if (Text.contains("sfence") || Text.contains("mfence"))
      fence(Call);
    else if (Text.contains("lock") || Text.contains("xchg"))
      lockedFence(Call);
  }

  void visitSingle(const MemoryAccess &A) {
    auto *Store = dyn_cast<StoreInst>(A.At);
    if (!A.To)
      return one(A, Event::Load);
    if (Store && Store->hasMetadata(LLVMContext::MD_nontemporal))
      return nonTemporal(*Store, A.To,
                         cast<ConstantInt>(A.Length)->getZExtValue());
    if (Store && Store->getOrdering() != AtomicOrdering::SequentiallyConsistent)
      return one(A, Event::Store);
    if (!Store)
      one(A, Event::Load);
    one(A, Event::Locked);
    lockedFence(*A.At);
  }

  void visitLanes(const MemoryAccess &A) {
    for (unsigned Lane = 0;
         Lane != cast<FixedVectorType>(A.Of)->getNumElements(); ++Lane)
      add({A.At, A.From ? Event::Load : Event::Store, A.From ? A.From : A.To,
           A.Length, /*IsRange=*/false, A.Mask, Lane});
  }

  void visitRange(const MemoryAccess &A) {
    const bool Strings = A.What == MemoryAccess::Strings;
    Value *Length = A.Length ? A.Length : bytes(UINT64_MAX);
    if (A.From)
      add({A.At, Strings ? Event::StringLoad : Event::Load, A.From, Length,
           /*IsRange=*/true});
    if (A.To)
      add({A.At, A.Length ? Event::Store : Event::StringStore, A.To, Length,
           /*IsRange=*/true});
  }

  /// Weaker fences are no instructions on x86.
  void visitFence(FenceInst &Fence) {
    if (Fence.getOrdering() == AtomicOrdering::SequentiallyConsistent &&
        Fence.getSyncScopeID() == SyncScope::System)
      Found.push_back({&Fence, Event::Fence});
  }

  void visitIntrinsic(IntrinsicInst &Call) {
    auto Operand = [&](unsigned A) { return Call.getArgOperand(A); };
    switch (Call.getIntrinsicID()) {
    case Intrinsic::x86_sse2_mfence:
      Found.push_back({&Call, Event::Fence});
      return;
    case Intrinsic::x86_sse_sfence:
      return fence(Call);
    case Intrinsic::x86_clwb:
    case Intrinsic::x86_clflushopt:
      return writeBack(Call, Operand(0), /*WaitsForFence=*/true);
    case Intrinsic::x86_sse2_clflush:
      return writeBack(Call, Operand(0), /*WaitsForFence=*/false);
    case Intrinsic::x86_sse2_maskmov_dqu:
      return nonTemporal(Call, Operand(2), 16);
    default:
      return;
    }
  }
};

class Inserter {
public:
  explicit Inserter(Module &M)
      : M(M), Word(Type::getInt64Ty(M.getContext())),
        Pointer(PointerType::getUnqual(M.getContext())),
        Region(StructType::get(Word, Word)),
        Watched(M.getOrInsertGlobal("hf_trace_watched", Region)) {}

  void run(ArrayRef<Report> Reports) {
    // The code behind an access stays right behind its reports, whatever is
    // inserted before that code.
    SmallVector<Instruction *, 32> Points;
    for (const Report &R : Reports)
      Points.push_back(R.isBefore() ? R.At : behind(*R.At));
    for (auto [R, Point] : zip(Reports, Points)) {
      insert(R, *Point);
      if (Turns && (R.What == Event::Store || R.What == Event::NonTemporal))
        insertTurn(R);
    }
  }

private:
  Module &M;
  Type *Word;
  Type *Pointer;
  StructType *Region;
  Constant *Watched;
  Function *ReadString = nullptr;

  static Instruction *behind(Instruction &I) {
    if (auto *Invoke = dyn_cast<InvokeInst>(&I))
      return &*SplitEdge(Invoke->getParent(), Invoke->getNormalDest())
                   ->getFirstInsertionPt();
    if (auto *Call = dyn_cast<CallInst>(&I))
      if (Call->isMustTailCall()) // of a C library function: a frame is no harm
        Call->setTailCallKind(CallInst::TCK_None);
    return I.getNextNode();
  }

  void insert(const Report &R, Instruction &Point) {
    AccessBuilder Builder(Point, *R.At);
    switch (R.What) {
    case Event::Load:
      ++NumLoads;
      return report(Builder, "hf_trace_load", R, Point);
    case Event::StringLoad:
      ++NumLoads;
      return call(Builder, readString(),
                  {R.Address, Builder.CreateZExtOrTrunc(R.Length, Word)});
    case Event::Store:
    case Event::StringStore:
      ++NumStores;
      return report(Builder, "hf_trace_store", R, Point);
    case Event::NonTemporal:
      ++NumStores;
      return report(Builder, "hf_trace_nt_store", R, Point);
    case Event::WriteBack:
      return report(Builder, "hf_trace_flush", R, Point);
    case Event::WriteBack1:
      return report(Builder, "hf_trace_clflush", R, Point);
    case Event::Locked:
      ++NumLocked;
      return report(Builder, "hf_trace_rmw", R, Point);
    case Event::Fence:
      ++NumFences;
      return call(Builder, callback("hf_trace_fence", {}), {});
    }
  }

  void insertTurn(const Report &R) {
    AccessBuilder Builder(*R.At, *R.At);
    report(Builder, "hf_trace_turn", R, *R.At);
  }

  FunctionCallee callback(StringRef Name, ArrayRef<Type *> Parameters) {
    return M.getOrInsertFunction(
        Name, FunctionType::get(Type::getVoidTy(M.getContext()), Parameters,
                                /*isVarArg=*/false));
  }

  static void call(IRBuilder<> &Builder, FunctionCallee Callee,
                   ArrayRef<Value *> Arguments) {
    CallInst *Call = Builder.CreateCall(Callee, Arguments);
    Call->setDoesNotThrow();
    Call->addFnAttr(Attribute::NoMerge);
  }

  void report(AccessBuilder &Builder, StringRef Name, const Report &R,
              Instruction &Point) {
    Value *Address = addressOf(Builder, R);
    Value *Length = lengthOf(Builder, R);
    Value *Condition =
        isWatched(Builder, Address, R.IsRange ? Length : nullptr);
    if (R.Mask)
      Condition = Builder.CreateLogicalAnd(
          Builder.CreateExtractElement(R.Mask, R.Lane), Condition);
    Builder.enterIf(Condition, Point);
    call(Builder, callback(Name, {Pointer, Word}), {Address, Length});
  }

  Value *addressOf(IRBuilder<> &Builder, const Report &R) {
    if (R.Address->getType()->isVectorTy())
      return Builder.CreateExtractElement(R.Address, R.Lane);
    if (R.Lane == 0)
      return R.Address;
    uint64_t Bytes = cast<ConstantInt>(R.Length)->getZExtValue();
    return Builder.CreatePtrAdd(R.Address, Builder.getInt64(R.Lane * Bytes));
  }

  Value *lengthOf(IRBuilder<> &Builder, const Report &R) {
    if (R.What != Event::StringStore)
      return Builder.CreateZExtOrTrunc(R.Length, Word);
    FunctionCallee Strlen = M.getOrInsertFunction("strlen", Word, Pointer);
    return Builder.CreateAdd(Builder.CreateCall(Strlen, R.Address),
                             Builder.getInt64(1));
  }

  /// Whether 'Address', or any of the 'Length' bytes from there, lies in the
  /// watched region.
  Value *isWatched(IRBuilder<> &Builder, Value *Address, Value *Length) {
    Value *Begin = Builder.CreateLoad(Word, Watched);
    Value *Bytes = Builder.CreateLoad(
        Word, Builder.CreateConstInBoundsGEP2_32(Region, Watched, 0, 1));
    Value *Offset =
        Builder.CreateSub(Builder.CreatePtrToInt(Address, Word), Begin);
    Value *BeginsInside = Builder.CreateICmpULT(Offset, Bytes);
    if (!Length)
      return BeginsInside;
    return Builder.CreateOr(
        BeginsInside, Builder.CreateICmpULT(Builder.CreateNeg(Offset), Length));
  }

  /// Makes void (const char* at, uint64_t most), which reports byte after byte
  /// up to the terminating zero. Its length cannot be asked for beforehand:
  /// only a reported byte has a value.
  Function *readString() {
    if (ReadString)
      return ReadString;
    LLVMContext &Context = M.getContext();
    ReadString = Function::Create(
        FunctionType::get(Type::getVoidTy(Context), {Pointer, Word}, false),
        GlobalValue::InternalLinkage, "hf_trace_string", M);
    ReadString->addFnAttr(Attribute::NoUnwind);
    auto NewBlock = [&](const char *Name) {
      return BasicBlock::Create(Context, Name, ReadString);
    };
    BasicBlock *Entry = NewBlock("entry"), *Loop = NewBlock("loop"),
               *Read = NewBlock("read"), *Done = NewBlock("done");
    IRBuilder<> Builder(Entry);
    Builder.CreateBr(Loop);

    Builder.SetInsertPoint(Loop);
    PHINode *At = Builder.CreatePHI(Pointer, 2);
    PHINode *Left = Builder.CreatePHI(Word, 2);
    Builder.CreateCondBr(Builder.CreateIsNull(Left), Done, Read);

    Builder.SetInsertPoint(Read);
    LoadInst *Byte = Builder.CreateLoad(Builder.getInt8Ty(), At);
    At->addIncoming(ReadString->getArg(0), Entry);
    At->addIncoming(Builder.CreatePtrAdd(At, Builder.getInt64(1)), Read);
    Left->addIncoming(ReadString->getArg(1), Entry);
    Left->addIncoming(Builder.CreateSub(Left, Builder.getInt64(1)), Read);
    Builder.CreateCondBr(Builder.CreateIsNull(Byte), Done, Loop);

    Builder.SetInsertPoint(Done);
    Builder.CreateRetVoid();
    insert({Byte, Event::Load, At, Builder.getInt64(1)}, *Byte);
    return ReadString;
  }
};

} // namespace

PreservedAnalyses TraceAccessesPass::run(Module &M,
                                         ModuleAnalysisManager &MAM) {
  std::optional<Inserter> Insert; // declares what it refers to
  return rewriteAccesses<Report>(
      M, MAM,
      [](Function &F, const TargetLibraryInfo &Library) {
        Collector C(F);
        if (!F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation))
          for (Instruction &I : instructions(F)) {
            forEachAccess(I, Library,
                          [&](const MemoryAccess &A) { C.visit(A); });
            C.visitOther(I);
          }
        return std::move(C.Found);
      },
      [&](ArrayRef<Report> Reports) {
        if (!Insert)
          Insert.emplace(M);
        Insert->run(Reports);
      });
}

PreservedAnalyses KeepUntracedApartPass::run(Module &M,
                                             ModuleAnalysisManager &) {
  for (Function &F : M)
    if (F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) &&
        !F.hasFnAttribute(Attribute::AlwaysInline))
      F.addFnAttr(Attribute::NoInline);
  return PreservedAnalyses::all();
}

} // namespace holdfast
