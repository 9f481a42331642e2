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
// Cache-line write-backs, sfence and non-temporal stores are reported as well,
// as intrinsics and as inline assembly, but for those of the persistence layer,
// which reports its own. Of other inline assembly the memory operands are.
//
// Two options add reports. -holdfast-trace-turns: before each store, where a
// checker may let another thread run; after it a load that it rests on is past.
// -holdfast-trace-locked: locked operations as the fences that they are on x86.
// Code that must not come to rely on them, the library, is built without.
#include "transform/TraceAccesses.h"
#include "analysis/LibraryAccesses.h"
#include "analysis/Origin.h"
#include "transform/InsertCalls.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Instrumentation.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"

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
                    cl::desc("Report that a store is to come"));
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
  Collector(Function &F, const TargetLibraryInfo &Library)
      : Layout(F.getDataLayout()), Context(F.getContext()), Library(Library),
        ReportsItself(F.getName().starts_with("_ZN2hf7persist")) {}

  SmallVector<Report, 32> Found;

  void visit(Instruction &I) {
    if (isa<StoreInst>(I) && I.hasMetadata(LLVMContext::MD_nontemporal))
      return nonTemporal(I, cast<StoreInst>(I).getPointerOperand(),
                         Layout.getTypeStoreSize(
                             cast<StoreInst>(I).getValueOperand()->getType()));
    if (auto *Load = dyn_cast<LoadInst>(&I))
      one(I, Event::Load, Load->getPointerOperand(), Load->getType());
    else if (auto *Store = dyn_cast<StoreInst>(&I))
      visitStore(*Store);
    else if (auto *Update = dyn_cast<AtomicRMWInst>(&I))
      locked(I, Update->getPointerOperand(), Update->getType());
    else if (auto *Exchange = dyn_cast<AtomicCmpXchgInst>(&I))
      locked(I, Exchange->getPointerOperand(),
             Exchange->getNewValOperand()->getType());
    else if (auto *Fence = dyn_cast<FenceInst>(&I))
      visitFence(*Fence);
    else if (auto *Call = dyn_cast<CallBase>(&I))
      visitCall(*Call);
  }

private:
  const DataLayout &Layout;
  LLVMContext &Context;
  const TargetLibraryInfo &Library;
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

  void one(Instruction &I, Event What, Value *Address, Type *T) {
    add({&I, What, Address, bytesOf(T)});
  }
  void range(Instruction &I, Event What, Value *Address, Value *Length) {
    add({&I, What, Address, Length, /*IsRange=*/true});
  }
  void locked(Instruction &I, Value *Address, Type *T) {
    one(I, Event::Load, Address, T);
    one(I, Event::Locked, Address, T);
    lockedFence(I);
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

  /// What its words say, and its memory operands.
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
          one(Call, Event::Load, Operand, T);
        else if (!NotTemporal)
          one(Call, Event::Store, Operand, T);
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

  void visitStore(StoreInst &Store) {
    const bool Exchanges =
        Store.getOrdering() == AtomicOrdering::SequentiallyConsistent;
    one(Store, Exchanges ? Event::Locked : Event::Store,
        Store.getPointerOperand(), Store.getValueOperand()->getType());
    if (Exchanges)
      lockedFence(Store);
  }

  /// Weaker fences are no instructions on x86.
  void visitFence(FenceInst &Fence) {
    if (Fence.getOrdering() == AtomicOrdering::SequentiallyConsistent &&
        Fence.getSyncScopeID() == SyncScope::System)
      Found.push_back({&Fence, Event::Fence});
  }

  void visitCall(CallBase &Call) {
    for (unsigned A = 0; A != Call.arg_size(); ++A)
      if (Call.isByValArgument(A)) // the call copies it
        range(Call, Event::Load, Call.getArgOperand(A),
              bytesOf(Call.getParamByValType(A)));
    if (auto *Assembly = dyn_cast<InlineAsm>(Call.getCalledOperand())) {
      visitAssembly(Call, *Assembly);
    } else if (auto *Memory = dyn_cast<AnyMemIntrinsic>(&Call)) {
      if (auto *Transfer = dyn_cast<AnyMemTransferInst>(Memory))
        range(Call, Event::Load, Transfer->getRawSource(), Memory->getLength());
      range(Call, Event::Store, Memory->getRawDest(), Memory->getLength());
    } else if (auto *Intrinsic = dyn_cast<IntrinsicInst>(&Call)) {
      visitIntrinsic(*Intrinsic);
    } else if (const LibraryCall *Shape = findLibraryCall(Call, Library)) {
      visitLibraryCall(Call, *Shape);
    }
  }

  void visitIntrinsic(IntrinsicInst &Call) {
    auto Operand = [&](unsigned A) { return Call.getArgOperand(A); };
    switch (Call.getIntrinsicID()) {
    case Intrinsic::masked_load:
    case Intrinsic::masked_gather:
      return lanes(Call, Event::Load, Operand(0), Operand(2), Call.getType());
    case Intrinsic::masked_store:
    case Intrinsic::masked_scatter:
      return lanes(Call, Event::Store, Operand(1), Operand(3),
                   Operand(0)->getType());
    case Intrinsic::masked_expandload:
      return range(Call, Event::Load, Operand(0), bytesOf(Call.getType()));
    case Intrinsic::masked_compressstore:
      return range(Call, Event::Store, Operand(1),
                   bytesOf(Operand(0)->getType()));
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

  void lanes(IntrinsicInst &Call, Event What, Value *Address, Value *Mask,
             Type *T) {
    auto *Vector = cast<FixedVectorType>(T);
    for (unsigned Lane = 0; Lane != Vector->getNumElements(); ++Lane)
      add({&Call, What, Address, bytesOf(Vector->getElementType()),
           /*IsRange=*/false, Mask, Lane});
  }

  void visitLibraryCall(CallBase &Call, const LibraryCall &Shape) {
    Value *Length =
        Shape.Length < 0 ? bytes(UINT64_MAX) : Call.getArgOperand(Shape.Length);
    for (int A : Shape.Reads)
      if (A >= 0)
        add({&Call, Shape.ReadsStrings ? Event::StringLoad : Event::Load,
             Call.getArgOperand(A), Length, /*IsRange=*/true});
    if (Shape.Writes >= 0)
      add({&Call, Shape.Length < 0 ? Event::StringStore : Event::Store,
           Call.getArgOperand(Shape.Writes), Length, /*IsRange=*/true});
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
    // What follows an access stays right behind its reports, whatever is
    // inserted before that.
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
    InstrumentationIRBuilder Builder(&Point);
    Builder.SetCurrentDebugLocation(R.At->getDebugLoc());
    InstrumentationIRBuilder::ensureDebugInfo(Builder, *Point.getFunction());
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
    InstrumentationIRBuilder Builder(R.At);
    Builder.SetCurrentDebugLocation(R.At->getDebugLoc());
    InstrumentationIRBuilder::ensureDebugInfo(Builder, *R.At->getFunction());
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

  void report(IRBuilder<> &Builder, StringRef Name, const Report &R,
              Instruction &Point) {
    Value *Address = addressOf(Builder, R);
    Value *Length = lengthOf(Builder, R);
    Value *Condition =
        isWatched(Builder, Address, R.IsRange ? Length : nullptr);
    if (R.Mask)
      Condition = Builder.CreateLogicalAnd(
          Builder.CreateExtractElement(R.Mask, R.Lane), Condition);
    Instruction *Then = SplitBlockAndInsertIfThen(
        Condition, &Point, /*Unreachable=*/false,
        MDBuilder(M.getContext()).createUnlikelyBranchWeights());
    DebugLoc Location = Builder.getCurrentDebugLocation();
    Builder.SetInsertPoint(Then);
    Builder.SetCurrentDebugLocation(Location);
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

  /// void (const char* at, uint64_t most): reports byte after byte up to the
  /// terminating zero. Its length cannot be asked for beforehand: only a
  /// reported byte has a value.
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

bool isTraced(const Function &F) {
  return !F.isDeclaration() && !F.hasAvailableExternallyLinkage() &&
         !F.hasFnAttribute(Attribute::Naked) &&
         !F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) &&
         !F.getName().starts_with("hf_trace_");
}

} // namespace

PreservedAnalyses TraceAccessesPass::run(Module &M,
                                         ModuleAnalysisManager &MAM) {
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  SmallVector<std::pair<Function *, SmallVector<Report, 32>>, 32> Traced;
  for (Function &F : M) {
    if (!isTraced(F))
      continue;
    Collector C(F, FAM.getResult<TargetLibraryAnalysis>(F));
    for (Instruction &I : instructions(F))
      C.visit(I);
    if (!C.Found.empty())
      Traced.emplace_back(&F, std::move(C.Found));
  }
  if (Traced.empty())
    return PreservedAnalyses::all();

  Inserter Inserter(M);
  for (auto &[F, Reports] : Traced) {
    // A block that is split must not leave an alloca outside the entry block.
    BasicBlock &Entry = F->getEntryBlock();
    PrepareToSplitEntryBlock(Entry, Entry.getFirstNonPHIOrDbgOrAlloca());
    Inserter.run(Reports);
    dropMemoryPromises(*F);
  }
  return PreservedAnalyses::none();
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
