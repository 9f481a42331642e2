// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry of a section:
//
// 1. It packs its arguments into a block on the stack.
// 2. It calls hf_NAME_begin(descriptor, block), then the body, then
//    hf_NAME_commit() if begin opened a section rather than joined one. If an
//    exception leaves a body that can be taken back, hf_NAME_abort() ends the
//    section that was opened. A commit may throw out of functions whose source
//    lets exceptions out (hf_NAME_commit_or_throw). Where there are two forms of
//    the body, begin says which runs.
// 3. The descriptor names the function, its version and the layout of the
//    block, and holds a thunk that unpacks a recorded block and calls the body.
//
// Every object file that has an inline function or template has all of this. It
// lies in the function's own COMDAT group, so that the linker keeps one, and
// all of it from the same object.
#include "transform/EmitEntry.h"
#include "analysis/Calls.h"
#include "analysis/Names.h"
#include "analysis/VersionHash.h"
#include "transform/SplitCopies.h"

#include "holdfast/abi/relocate_abi.h"

#include "llvm/IR/DataLayout.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace holdfast {

/// Registration comes before constructors of ordinary globals, which may open
/// pools.
static constexpr int RegistrationPriority = 1000;

/// Returns the closure that an hf::tx runs, which the body calls or has inlined.
static const DISubprogram *closureOf(const Function &Txfunc,
                                     const Function &Body) {
  if (!Txfunc.hasFnAttribute(ClosureAttr))
    return nullptr;
  for (const Instruction &I : instructions(Body)) {
    const DISubprogram *Found = nullptr;
    for (const DILocation *At = I.getDebugLoc(); At && At->getInlinedAt();
         At = At->getInlinedAt())
      Found = At->getScope()->getSubprogram(); // ends with the outermost
    if (const auto *Call = dyn_cast<CallBase>(&I); Call && !Found)
      if (const Function *Callee = calledFunction(*Call))
        Found = Callee->getSubprogram();
    if (Found && Found->getName() == "operator()")
      return Found;
  }
  return nullptr;
}

std::string placeInSource(const Function &Txfunc, const Function &Body) {
  const DISubprogram *Closure = closureOf(Txfunc, Body);
  if (const DISubprogram *Program = Closure ? Closure : Txfunc.getSubprogram())
    return (Program->getFilename() + ":" + Twine(Program->getLine())).str();
  return Txfunc.getName().str();
}

Constant *emitText(Module &M, StringRef Text, const Twine &Name) {
  auto *Data = ConstantDataArray::getString(M.getContext(), Text);
  auto *Global = new GlobalVariable(M, Data->getType(), true,
                                    GlobalValue::PrivateLinkage, Data, Name);
  // Equal texts are merged across functions, so it is in no COMDAT group.
  Global->setUnnamedAddr(GlobalValue::UnnamedAddr::Global);
  return Global;
}

Constant *emitText(Function &Txfunc, StringRef Text) {
  return emitText(*Txfunc.getParent(), Text, Txfunc.getName() + ".hf_text");
}

GlobalVariable *emitDescriptor(Function &Txfunc, const EngineInfo &Engine,
                               Constant &Contents) {
  bool Shared = Txfunc.hasComdat() && !Txfunc.hasLocalLinkage();
  // The engine is part of the symbol: an object built for another one does not
  // link with this.
  auto *Descriptor = new GlobalVariable(
      *Txfunc.getParent(), Contents.getType(), true,
      Shared ? GlobalValue::LinkOnceODRLinkage : GlobalValue::InternalLinkage,
      &Contents, Txfunc.getName() + ".hf_" + Engine.Name);
  if (Shared)
    Descriptor->setVisibility(GlobalValue::HiddenVisibility);
  Descriptor->setComdat(Txfunc.getComdat());
  return Descriptor;
}

void emptyFunction(Function &F) {
  GlobalValue::LinkageTypes Linkage = F.getLinkage();
  DISubprogram *Program = F.getSubprogram();
  F.deleteBody();
  F.setLinkage(Linkage);
  F.setSubprogram(Program);
}

namespace {

class EntryEmitter {
public:
  EntryEmitter(Function &Txfunc, ArrayRef<SectionForm> Forms,
               const ArgumentBlock &Block, const SectionOptions &Options)
      : Txfunc(Txfunc), Forms(Forms), Body(*Forms.front().Body), Block(Block),
        Options(Options), M(*Txfunc.getParent()), Context(M.getContext()),
        Layout(M.getDataLayout()), Void(Type::getVoidTy(Context)),
        Pointer(PointerType::getUnqual(Context)),
        Word32(Type::getInt32Ty(Context)), Word64(Type::getInt64Ty(Context)) {}

  GlobalVariable *run(uint64_t Version) {
    if (Options.Parts == LogParts::ClobberLogOnly)
      for (const SectionForm &Form : Forms)
        readWhereItIs(*Form.Body);
    std::string Where = placeInSource(Txfunc, Body);
    GlobalVariable *Descriptor = describe(emitThunk(), Version, Where);
    emitEntryBody(*Descriptor);
    if (Comdat *Group = Txfunc.getComdat())
      for (const SectionForm &Form : Forms)
        Form.Body->setComdat(Group);
    return Descriptor;
  }

private:
  Function &Txfunc;
  ArrayRef<SectionForm> Forms;
  Function &Body; ///< of the first form
  const ArgumentBlock &Block;
  const SectionOptions &Options;
  Module &M;
  LLVMContext &Context;
  const DataLayout &Layout;
  Type *Void, *Pointer, *Word32, *Word64;

  /// Preserved bytes belong to the v_log.
  static void readWhereItIs(Function &Body) {
    for (Instruction &I : make_early_inc_range(instructions(Body)))
      if (auto *Call = dyn_cast<CallInst>(&I);
          Call && Call->getCalledFunction() &&
          Call->getCalledFunction()->getName() == "hf_vlog_preserve") {
        Call->replaceAllUsesWith(Call->getArgOperand(0));
        Call->eraseFromParent();
      }
  }

  /// The recorded block has no alignment to rely on beyond the word's.
  static Align alignIn(uint64_t Offset) {
    return commonAlignment(Align(8), Offset);
  }

  Value *slot(IRBuilder<> &Builder, Value *Base,
              const PackedArgument &A) const {
    return Builder.CreatePtrAdd(Base, Builder.getInt64(A.OffsetBytes));
  }

  static void copyAttributes(CallBase &Call, const Function &Body) {
    LLVMContext &Context = Body.getContext();
    Call.setCallingConv(Body.getCallingConv());
    AttributeList Attributes = Body.getAttributes();
    SmallVector<AttributeSet, 8> Parameters;
    for (unsigned I = 0; I != Body.arg_size(); ++I)
      Parameters.push_back(Attributes.getParamAttrs(I));
    Call.setAttributes(
        AttributeList::get(Context, {}, Attributes.getRetAttrs(), Parameters));
  }

  Function *emitThunk() {
    auto *Thunk = Function::Create(FunctionType::get(Void, {Pointer}, false),
                                   GlobalValue::InternalLinkage,
                                   Txfunc.getName() + ".hf_re_execute", M);
    Thunk->setComdat(Txfunc.getComdat());
    Thunk->addFnAttrs(AttrBuilder(
        Context,
        AttributeSet::get(
            Context, AttrBuilder(Context, Body.getAttributes().getFnAttrs()))));
    dropUnfitAttributes(*Thunk);
    IRBuilder<> Builder(BasicBlock::Create(Context, "", Thunk));

    SmallVector<Value *, 8> Values(Body.arg_size(), nullptr);
    for (const Argument &A : Body.args())
      if (A.hasStructRetAttr()) {
        AllocaInst *Scratch = Builder.CreateAlloca(A.getParamStructRetType());
        Scratch->setAlignment(
            std::max(Scratch->getAlign(), A.getParamAlign().valueOrOne()));
        Values[A.getArgNo()] = Scratch;
      }
    for (const PackedArgument &A : Block.Arguments) {
      const Argument &Parameter = *Body.getArg(A.Index);
      Value *From = slot(Builder, Thunk->getArg(0), A);
      if (!Parameter.hasByValAttr()) {
        Values[A.Index] =
            Builder.CreateAlignedLoad(A.Type, From, alignIn(A.OffsetBytes));
        continue;
      }
      AllocaInst *Copy = Builder.CreateAlloca(A.Type);
      Copy->setAlignment(
          std::max(Copy->getAlign(), Parameter.getParamAlign().valueOrOne()));
      if (isRelocatable(M))
        copyByType(Builder, Copy, Copy->getAlign(), From,
                   alignIn(A.OffsetBytes), A.Type, Layout);
      else
        Builder.CreateMemCpy(Copy, Copy->getAlign(), From,
                             alignIn(A.OffsetBytes), A.SizeBytes);
      Values[A.Index] = Copy;
    }
    copyAttributes(*Builder.CreateCall(&Body, Values), Body);
    Builder.CreateRetVoid();
    return Thunk;
  }

  /// Target and sanitizer attributes are meant for the thunk too; what
  /// describes the body is not.
  static void dropUnfitAttributes(Function &Thunk) {
    for (Attribute::AttrKind Kind :
         {Attribute::Memory, Attribute::WillReturn, Attribute::NoReturn,
          Attribute::Naked, Attribute::AllocSize, Attribute::AllocKind})
      Thunk.removeFnAttr(Kind);
  }

  /// Lists the arguments in order, without overlaps: an aggregate is cut where
  /// the pointers are that must lead into the pool.
  SmallVector<hf_arg, 8> schema() const {
    SmallVector<hf_arg, 8> Entries;
    auto Add = [&](uint64_t From, uint64_t To, hf_arg_kind Kind) {
      if (From != To)
        Entries.push_back(
            {uint32_t(From), uint32_t(To - From), uint32_t(Kind)});
    };
    for (const PackedArgument &A : Block.Arguments) {
      uint64_t At = A.OffsetBytes, End = A.OffsetBytes + A.SizeBytes;
      for (const PointerField &Field : A.Fields) {
        uint64_t From = A.OffsetBytes + Field.OffsetBytes;
        if (!Field.Always || From < At || From + sizeof(uint64_t) > End)
          continue;
        Add(At, From, HF_ARG_VALUE);
        At = From + sizeof(uint64_t);
        Add(From, At, HF_ARG_POOL_POINTER);
      }
      Add(At, End, A.Kind);
    }
    return Entries;
  }

  Constant *emitSchema(ArrayRef<hf_arg> Schema) {
    auto *Entry = StructType::get(Word32, Word32, Word32);
    SmallVector<Constant *, 8> Entries;
    for (const hf_arg &A : Schema)
      Entries.push_back(
          ConstantStruct::get(Entry, {ConstantInt::get(Word32, A.offset_bytes),
                                      ConstantInt::get(Word32, A.size_bytes),
                                      ConstantInt::get(Word32, A.kind)}));
    auto *T = ArrayType::get(Entry, Entries.size());
    auto *Global = new GlobalVariable(M, T, true, GlobalValue::InternalLinkage,
                                      ConstantArray::get(T, Entries),
                                      Txfunc.getName() + ".hf_args");
    Global->setComdat(Txfunc.getComdat());
    return Global;
  }

  GlobalVariable *describe(Function *Thunk, uint64_t Version, StringRef Where) {
    // Without a v_log there is nothing to re-execute from: that build only
    // measures.
    bool Recorded = Options.Parts != LogParts::ClobberLogOnly;
    std::string Name = recordName(Txfunc);
    SmallVector<hf_arg, 8> Schema;
    if (Recorded)
      Schema = schema();
    // struct hf_txfunc of the ABI header, field by field.
    auto *T = StructType::get(Word32, Word32, Word64, Word64, Pointer, Pointer,
                              Pointer, Word64, Pointer);
    static_assert(sizeof(hf_txfunc) == 64 && offsetof(hf_txfunc, name) == 24 &&
                  offsetof(hf_txfunc, args_count) == 48);
    uint32_t Abi =
        HF_ABI_VERSION | Options.Engine->Bit << HF_ABI_ENGINE_SHIFT |
        (isRelocatable(*Txfunc.getParent()) ? HF_ABI_RELOCATABLE : 0);
    Constant *Fields[] = {ConstantInt::get(Word32, Abi),
                          ConstantInt::get(Word32, Recorded ? Block.Bytes : 0),
                          ConstantInt::get(Word64, xxh3_64bits(Name)),
                          ConstantInt::get(Word64, Version),
                          emitText(Txfunc, Name),
                          emitText(Txfunc, Where),
                          emitSchema(Schema),
                          ConstantInt::get(Word64, Schema.size()),
                          Thunk};
    return emitDescriptor(Txfunc, *Options.Engine,
                          *ConstantStruct::get(T, Fields));
  }

  AllocaInst *pack(IRBuilder<> &Builder) {
    AllocaInst *Packed =
        Builder.CreateAlloca(ArrayType::get(Builder.getInt8Ty(), Block.Bytes));
    Packed->setAlignment(Align(16));
    if (Block.HasPadding) // goes to PM as it is
      Builder.CreateMemSet(Packed, Builder.getInt8(0), Block.Bytes,
                           Packed->getAlign());
    for (const PackedArgument &A : Block.Arguments) {
      Argument *Value = Txfunc.getArg(A.Index);
      auto *To = slot(Builder, Packed, A);
      if (Body.getArg(A.Index)->hasByValAttr()) // 'Value' may be 'byref'
        Builder.CreateMemCpy(To, alignIn(A.OffsetBytes), Value,
                             Value->getParamAlign(), A.SizeBytes);
      else
        Builder.CreateAlignedStore(Value, To, alignIn(A.OffsetBytes));
    }
    return Packed;
  }

  FunctionCallee runtime(const EngineInfo &Engine, StringRef Step, Type *Result,
                         ArrayRef<Type *> Parameters) {
    return M.getOrInsertFunction(Engine.callee(Step),
                                 FunctionType::get(Result, Parameters, false));
  }

  bool isLeftByExceptions() const {
    return Options.Engine->TakesBack &&
           (!Txfunc.doesNotThrow() || Txfunc.hasFnAttribute(MayThrowAttr));
  }

  static Value *isSet(IRBuilder<> &Builder, Value &Bits) {
    return Builder.CreateICmpNE(&Bits, Builder.getInt32(0));
  }

  CallBase *callBody(IRBuilder<> &Builder, const SectionForm &Form,
                     ArrayRef<Value *> Values, Value &Opened) {
    if (!isLeftByExceptions() || Form.Body->doesNotThrow()) {
      CallInst *Call = Builder.CreateCall(Form.Body, Values);
      copyAttributes(*Call, *Form.Body);
      return Call;
    }
    BasicBlock *Returned = BasicBlock::Create(Context, "returned", &Txfunc);
    BasicBlock *Thrown = BasicBlock::Create(Context, "thrown", &Txfunc);
    InvokeInst *Call =
        Builder.CreateInvoke(Form.Body, Returned, Thrown, Values);
    copyAttributes(*Call, *Form.Body);

    Builder.SetInsertPoint(Thrown);
    LandingPadInst *Exception =
        Builder.CreateLandingPad(StructType::get(Pointer, Word32), 0);
    Exception->setCleanup(true);
    BasicBlock *Abort = BasicBlock::Create(Context, "abort", &Txfunc);
    BasicBlock *Resume = BasicBlock::Create(Context, "resume", &Txfunc);
    Builder.CreateCondBr(isSet(Builder, Opened), Abort, Resume);
    Builder.SetInsertPoint(Abort);
    Builder.CreateCall(runtime(*Form.Engine, "abort", Void, {}))
        ->setDoesNotThrow();
    Builder.CreateBr(Resume);
    Builder.SetInsertPoint(Resume);
    Builder.CreateResume(Exception);

    // A body without handlers is unwound by the language's own function.
    Txfunc.setPersonalityFn(
        Form.Body->hasPersonalityFn()
            ? Form.Body->getPersonalityFn()
            : cast<Constant>(M.getOrInsertFunction(
                                  "__gxx_personality_v0",
                                  FunctionType::get(Word32, /*isVarArg=*/true))
                                 .getCallee()));
    Builder.SetInsertPoint(Returned);
    return Call;
  }

  /// Runs the form, ends the section if it was opened here, and returns.
  void runForm(IRBuilder<> &Builder, const SectionForm &Form, Value &Opened) {
    SmallVector<Value *, 8> Values;
    for (Argument &A : Txfunc.args())
      Values.push_back(&A);
    CallBase *Result = callBody(Builder, Form, Values, Opened);

    BasicBlock *Commit = BasicBlock::Create(Context, "commit", &Txfunc);
    BasicBlock *Done = BasicBlock::Create(Context, "done", &Txfunc);
    Builder.CreateCondBr(isSet(Builder, Opened), Commit, Done);
    Builder.SetInsertPoint(Commit);
    if (isLeftByExceptions())
      Builder.CreateCall(runtime(*Form.Engine, "commit_or_throw", Void, {}));
    else
      Builder.CreateCall(runtime(*Form.Engine, "commit", Void, {}))
          ->setDoesNotThrow();
    Builder.CreateBr(Done);
    Builder.SetInsertPoint(Done);
    if (Txfunc.getReturnType()->isVoidTy())
      Builder.CreateRetVoid();
    else
      Builder.CreateRet(Result);
  }

  void emitEntryBody(GlobalVariable &Descriptor) {
    emptyFunction(Txfunc);
    if (isLeftByExceptions())
      Txfunc.removeFnAttr(Attribute::NoUnwind);
    IRBuilder<> Builder(BasicBlock::Create(Context, "", &Txfunc));
    if (DISubprogram *Program = Txfunc.getSubprogram())
      Builder.SetCurrentDebugLocation(
          DILocation::get(Context, Program->getLine(), 0, Program));

    Value *Packed = Block.Arguments.empty()
                        ? ConstantPointerNull::get(Builder.getPtrTy())
                        : static_cast<llvm::Value *>(pack(Builder));
    CallInst *Begun = Builder.CreateCall(
        runtime(*Options.Engine, "begin", Word32, {Pointer, Pointer}),
        {&Descriptor, Packed});
    Begun->setDoesNotThrow();
    if (Forms.size() == 1)
      return runForm(Builder, Forms.front(), *Begun);

    Value *Opened = Builder.CreateAnd(Begun, HF_SECTION_OPENED);
    Value *IsInOrder =
        isSet(Builder, *Builder.CreateAnd(Begun, HF_SECTION_IN_ORDER));
    SmallVector<BasicBlock *, 2> Blocks;
    for (const SectionForm &Form : Forms)
      Blocks.push_back(BasicBlock::Create(Context, Form.Engine->Name, &Txfunc));
    Builder.CreateCondBr(IsInOrder, Blocks.back(), Blocks.front());
    for (auto [Form, Block] : zip(Forms, Blocks)) {
      Builder.SetInsertPoint(Block);
      runForm(Builder, Form, *Opened);
    }
  }
};

} // namespace

GlobalVariable *emitEntry(Function &Txfunc, ArrayRef<SectionForm> Forms,
                          const ArgumentBlock &Arguments, uint64_t Version,
                          const SectionOptions &Options) {
  return EntryEmitter(Txfunc, Forms, Arguments, Options).run(Version);
}

static Function *newListedFunction(Module &M, const char *Name) {
  return Function::createWithDefaultAttr(
      FunctionType::get(Type::getVoidTy(M.getContext()), {}, false),
      GlobalValue::InternalLinkage, 0, Name, &M);
}

/// Makes a function that calls the runtime's of this name, if the program has it,
/// with each of these lists of arguments.
static Function *callsIfThere(Module &M, const char *Made, StringRef Name,
                              ArrayRef<SmallVector<Value *, 2>> Arguments) {
  LLVMContext &Context = M.getContext();
  SmallVector<Type *, 2> Types;
  for (Value *Argument : Arguments.front())
    Types.push_back(Argument->getType());
  FunctionCallee Called = M.getOrInsertFunction(
      Name, FunctionType::get(Type::getVoidTy(Context), Types, false));
  auto *Declared = cast<Function>(Called.getCallee());
  if (Declared->isDeclaration())
    Declared->setLinkage(GlobalValue::ExternalWeakLinkage);
  Function *F = newListedFunction(M, Made);
  BasicBlock *Entry = BasicBlock::Create(Context, "", F);
  BasicBlock *Call = BasicBlock::Create(Context, "there", F);
  BasicBlock *Done = BasicBlock::Create(Context, "done", F);
  IRBuilder<> Builder(Entry);
  Builder.CreateCondBr(Builder.CreateIsNotNull(Declared), Call, Done);
  Builder.SetInsertPoint(Call);
  for (const auto &Its : Arguments)
    Builder.CreateCall(Called, Its)->setDoesNotThrow();
  Builder.CreateBr(Done);
  Builder.SetInsertPoint(Done);
  Builder.CreateRetVoid();
  return F;
}

/// Whether the module may be part of a library that is unloaded: no program of
/// its own, and no part of one that says so.
static bool mayBeUnloaded(const Module &M) {
  return M.getPICLevel() != PICLevel::NotPIC &&
         M.getPIELevel() == PIELevel::Default;
}

/// Before its constructors nothing of a module runs, and nothing behind its
/// destructors: these are the first and the last.
static void takeBackAtEnd(Module &M, StringRef Forget,
                          ArrayRef<SmallVector<Value *, 2>> Arguments) {
  if (mayBeUnloaded(M))
    appendToGlobalDtors(M, callsIfThere(M, "hf_forget", Forget, Arguments),
                        RegistrationPriority);
}

void emitAtLoad(Module &M, StringRef Name,
                ArrayRef<SmallVector<Value *, 2>> Arguments) {
  LLVMContext &Context = M.getContext();
  SmallVector<Type *, 4> Types;
  for (Value *Argument : Arguments.front())
    Types.push_back(Argument->getType());
  FunctionCallee Called = M.getOrInsertFunction(
      Name, FunctionType::get(Type::getVoidTy(Context), Types, false));
  Function *Constructor = newListedFunction(M, "hf_register");
  IRBuilder<> Builder(BasicBlock::Create(Context, "", Constructor));
  for (const auto &Its : Arguments)
    Builder.CreateCall(Called, Its)->setDoesNotThrow();
  Builder.CreateRetVoid();
  appendToGlobalCtors(M, Constructor, RegistrationPriority);
}

void emitRegistration(Module &M, StringRef Name, StringRef Forget,
                      ArrayRef<GlobalVariable *> Descriptors) {
  if (Descriptors.empty())
    return;
  SmallVector<SmallVector<Value *, 2>, 8> Arguments;
  for (GlobalVariable *Descriptor : Descriptors)
    Arguments.push_back({Descriptor});
  emitAtLoad(M, Name, Arguments);
  takeBackAtEnd(M, Forget, Arguments);
}

void emitWeakRegistration(Module &M, StringRef Name, StringRef Forget,
                          Constant &Table, uint64_t Rows) {
  const SmallVector<Value *, 2> Arguments{
      &Table, ConstantInt::get(Type::getInt64Ty(M.getContext()), Rows)};
  appendToGlobalCtors(M, callsIfThere(M, "hf_register", Name, Arguments),
                      RegistrationPriority);
  takeBackAtEnd(M, Forget, Arguments);
}

} // namespace holdfast
