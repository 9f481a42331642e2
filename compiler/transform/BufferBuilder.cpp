// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/BufferBuilder.h"
#include "transform/InsertCalls.h"

#include "holdfast/abi/holdfast_abi.h"

#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace holdfast {

/// The most bytes that hf_NAME_write takes, and the grain that it cuts memory into.
static constexpr uint64_t WriteBytesMax = 16;
/// The filter has a bit for each granule of 16 bytes, and words of 64 bits.
static constexpr unsigned GranuleShift = 4;
static constexpr unsigned WordShift = GranuleShift + 6;

BufferBuilder::BufferBuilder(const EngineInfo &Engine, Instruction &Point,
                             const Instruction &Access)
    : AccessBuilder(Point, Access), Engine(Engine), Point(Point),
      F(*Point.getFunction()), M(*Point.getModule()) {}

CallInst *BufferBuilder::call(StringRef Step, Type *Result,
                              ArrayRef<Value *> Arguments) {
  SmallVector<Type *, 3> Types;
  for (Value *Argument : Arguments)
    Types.push_back(Argument->getType());
  CallInst *Call =
      CreateCall(M.getOrInsertFunction(Engine.callee(Step),
                                       FunctionType::get(Result, Types, false)),
                 Arguments);
  Call->setDoesNotThrow();
  return Call;
}

Value *BufferBuilder::read(Value *Address, Value *Bytes) {
  return call("read", getPtrTy(), {Address, Bytes});
}

Value *BufferBuilder::filter() {
  Constant *Filter =
      M.getOrInsertGlobal(Engine.callee("filter"), getPtrTy(), [&] {
        return new GlobalVariable(M, getPtrTy(), /*isConstant=*/false,
                                  GlobalValue::ExternalLinkage, nullptr,
                                  Engine.callee("filter"), nullptr,
                                  GlobalValue::InitialExecTLSModel);
      });
  BasicBlock &Block = F.getEntryBlock();
  IRBuilder<> Entry(&Block, Block.getFirstNonPHIOrDbgOrAlloca());
  return Entry.CreateLoad(getPtrTy(), Entry.CreateThreadLocalAddress(Filter));
}

Value *BufferBuilder::readInLine(Value *Filter, Value *Address, Value *Bytes) {
  Type *Word = getInt64Ty();
  Value *Number = CreatePtrToInt(Address, Word);
  Value *Index =
      CreateAnd(CreateLShr(Number, WordShift), HF_REDO_FILTER_WORDS - 1);
  Value *Bits = CreateLoad(Word, CreateGEP(Word, Filter, Index));
  Value *Granule = CreateAnd(CreateLShr(Number, GranuleShift), 63);
  Value *IsThere = CreateTrunc(CreateLShr(Bits, Granule), getInt1Ty());

  BasicBlock *Head = Point.getParent();
  Instruction *Then = enterIf(IsThere, Point);
  Value *Place = read(Address, Bytes);
  PHINode *Both =
      PHINode::Create(Address->getType(), 2, "", Point.getParent()->begin());
  Both->addIncoming(Address, Head);
  Both->addIncoming(Place, Then->getParent());
  SetInsertPoint(&Point);
  return Both;
}

Value *BufferBuilder::readString(Value *Address) {
  return call("read_string", getPtrTy(), {Address});
}

void BufferBuilder::put(Value *To, Value *From, Value *Bytes) {
  announceAccess(*this, "write", To, Bytes);
  call("put", getVoidTy(), {To, From, Bytes});
}

void BufferBuilder::copy(Value *To, Value *From, Value *Bytes) {
  announceAccess(*this, "read", From, Bytes);
  announceAccess(*this, "write", To, Bytes);
  call("copy", getVoidTy(), {To, From, Bytes});
}

void BufferBuilder::fill(Value *To, Value *Byte, Value *Bytes) {
  announceAccess(*this, "write", To, Bytes);
  call("fill", getVoidTy(), {To, CreateZExtOrTrunc(Byte, getInt32Ty()), Bytes});
}

void BufferBuilder::store(Value *V, Value *Address, Align Known) {
  const DataLayout &Layout = M.getDataLayout();
  Type *T = V->getType();
  if (T->isAggregateType()) {
    // The padding between the elements is not stored.
    auto *Struct = dyn_cast<StructType>(T);
    unsigned Count = Struct ? Struct->getNumElements()
                            : cast<ArrayType>(T)->getNumElements();
    for (unsigned I = 0; I != Count; ++I) {
      uint64_t Offset =
          Struct ? uint64_t(Layout.getStructLayout(Struct)->getElementOffset(I))
                 : I * Layout.getTypeAllocSize(T->getArrayElementType());
      store(CreateExtractValue(V, I),
            Offset ? CreatePtrAdd(Address, word(Offset)) : Address,
            commonAlignment(Known, Offset));
    }
    return;
  }
  uint64_t Bytes = Layout.getTypeStoreSize(T).getFixedValue();
  if (isPowerOf2_64(Bytes) && Bytes <= WriteBytesMax &&
      Known.value() >= Bytes) {
    announceAccess(*this, "write", Address, word(Bytes));
    Value *Place = call("write", getPtrTy(), {Address, word(Bytes)});
    CreateAlignedStore(V, Place, std::min(Known, Align(WriteBytesMax)));
    return;
  }
  AllocaInst *Copy = local(T);
  CreateStore(V, Copy);
  put(Address, Copy, word(Bytes));
}

AllocaInst *BufferBuilder::local(Type *T, MaybeAlign Known) {
  AllocaInst *Local = IRBuilder<>(&*F.getEntryBlock().begin()).CreateAlloca(T);
  Local->setAlignment(std::max(Local->getAlign(), Known.valueOrOne()));
  return Local;
}

Value *BufferBuilder::word(Value *Length) {
  return CreateZExtOrTrunc(Length, getInt64Ty());
}

Value *BufferBuilder::lengthOfString(Value *At) {
  FunctionCallee Strlen =
      M.getOrInsertFunction("strlen", getInt64Ty(), getPtrTy());
  return CreateCall(Strlen, At);
}

Value *BufferBuilder::countUntil(Value *Address, Value *Stop, Value *Most) {
  return CreateCall(counter(), {Address, CreateTrunc(Stop, getInt8Ty()), Most});
}

/// Makes uint64_t (const void* at, char stop, uint64_t most), which looks at byte
/// after byte: how far it may look shows as it goes.
Function *BufferBuilder::counter() {
  std::string Name = Engine.callee("until");
  if (Function *Known = M.getFunction(Name))
    return Known;
  LLVMContext &Context = M.getContext();
  Type *Word = getInt64Ty(), *Byte = getInt8Ty();
  auto *Counter =
      Function::Create(FunctionType::get(Word, {getPtrTy(), Byte, Word}, false),
                       GlobalValue::InternalLinkage, Name, M);
  Counter->addFnAttr(Attribute::NoUnwind);
  auto NewBlock = [&](const char *Name) {
    return BasicBlock::Create(Context, Name, Counter);
  };
  BasicBlock *Entry = NewBlock("entry"), *Loop = NewBlock("loop"),
             *Look = NewBlock("look"), *Done = NewBlock("done");
  IRBuilder<> Builder(Entry);
  Builder.CreateBr(Loop);

  Builder.SetInsertPoint(Loop);
  PHINode *Count = Builder.CreatePHI(Word, 2);
  Builder.CreateCondBr(Builder.CreateICmpULT(Count, Counter->getArg(2)), Look,
                       Done);

  Builder.SetInsertPoint(Look);
  Value *At = Builder.CreateGEP(Byte, Counter->getArg(0), Count);
  CallInst *Place =
      Builder.CreateCall(M.getOrInsertFunction(Engine.callee("read"),
                                               getPtrTy(), getPtrTy(), Word),
                         {At, Builder.getInt64(1)});
  Place->setDoesNotThrow();
  Value *Found = Builder.CreateAlignedLoad(Byte, Place, Align(1));
  Value *Next = Builder.CreateAdd(Count, Builder.getInt64(1));
  Builder.CreateCondBr(Builder.CreateICmpEQ(Found, Counter->getArg(1)), Done,
                       Loop);

  Count->addIncoming(Builder.getInt64(0), Entry);
  Count->addIncoming(Next, Look);
  Builder.SetInsertPoint(Done);
  PHINode *Result = Builder.CreatePHI(Word, 2);
  Result->addIncoming(Count, Loop);
  Result->addIncoming(Next, Look);
  Builder.CreateRet(Result);
  return Counter;
}

} // namespace holdfast
