// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A txfunc whose section resumes is one function, which the runtime calls again to
// let it go on (EmitResumption.cpp). Its descriptor has what that takes: its
// name, its version, how large its frame is, which constants it may name, and a
// function without arguments that calls it. A helper that recurses, or is large, has a
// frame, too, and a descriptor; those that call it call it again.
#include "transform/MakeResumable.h"
#include "analysis/Calls.h"
#include "analysis/SectionRules.h"
#include "analysis/VersionHash.h"
#include "transform/EmitEntry.h"
#include "transform/EmitResumption.h"
#include "transform/FrameLocals.h"
#include "transform/InlineHelpers.h"
#include "transform/InsertCalls.h"

#include "holdfast/abi/justdo_abi.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/xxhash.h"

#include <functional>

using namespace llvm;

namespace holdfast {

/// Keeps of what is promised about parameters how they are passed: a section that
/// is resumed is given none of them.
static void dropParameterPromises(Function &F) {
  static constexpr Attribute::AttrKind Kept[] = {
      Attribute::ByVal,     Attribute::ByRef,         Attribute::StructRet,
      Attribute::ZExt,      Attribute::SExt,          Attribute::InReg,
      Attribute::Alignment, Attribute::StackAlignment};
  LLVMContext &Context = F.getContext();
  for (unsigned I = 0; I != F.arg_size(); ++I) {
    AttrBuilder Builder(Context);
    AttributeSet Given = F.getAttributes().getParamAttrs(I);
    bool InMemory = F.getArg(I)->getPointeeInMemoryValueType() != nullptr;
    for (Attribute::AttrKind Kind : Kept)
      if (Given.hasAttribute(Kind) &&
          (InMemory || Kind != Attribute::Alignment))
        Builder.addAttribute(Given.getAttribute(Kind));
    F.setAttributes(F.getAttributes()
                        .removeParamAttributes(Context, I)
                        .addParamAttributes(Context, I, Builder));
  }
}

/// Makes the section's function the body of its txfunc.
static void putBack(Function &Txfunc, Function &Body) {
  emptyFunction(Txfunc);
  AttributeFuncs::mergeAttributesForInlining(Txfunc, Body);
  Txfunc.setSubprogram(Body.getSubprogram());
  Body.setSubprogram(nullptr);
  Txfunc.splice(Txfunc.begin(), &Body);
  for (unsigned I = 0; I != Body.arg_size(); ++I) {
    Body.getArg(I)->replaceAllUsesWith(Txfunc.getArg(I));
    Txfunc.getArg(I)->takeName(Body.getArg(I));
  }
  Body.eraseFromParent();
  Txfunc.setPersonalityFn(nullptr);
  Txfunc.setDoesNotThrow();
  dropMemoryPromises(Txfunc);
  dropParameterPromises(Txfunc);
}

/// Emits void (), which calls the function with arguments that do not matter.
static Function *emitResume(Function &Txfunc) {
  Module &M = *Txfunc.getParent();
  LLVMContext &Context = M.getContext();
  auto *Resume = Function::Create(
      FunctionType::get(Type::getVoidTy(Context), false),
      GlobalValue::InternalLinkage, Txfunc.getName() + ".hf_resume", M);
  Resume->setComdat(Txfunc.getComdat());
  Resume->setDoesNotThrow();
  for (StringRef Kind : {"target-cpu", "tune-cpu", "target-features",
                         "frame-pointer", "min-legal-vector-width"})
    if (Txfunc.hasFnAttribute(Kind))
      Resume->addFnAttr(Txfunc.getFnAttribute(Kind));
  IRBuilder<> Builder(BasicBlock::Create(Context, "", Resume));
  SmallVector<Value *, 8> Values;
  for (Argument &A : Txfunc.args()) {
    Type *T = A.getPointeeInMemoryValueType();
    if (!T) {
      Values.push_back(Constant::getNullValue(A.getType()));
      continue;
    }
    AllocaInst *Local = Builder.CreateAlloca(T);
    Local->setAlignment(
        std::max(Local->getAlign(), A.getParamAlign().valueOrOne()));
    Builder.CreateStore(Constant::getNullValue(T), Local);
    Values.push_back(Local);
  }
  CallInst *Call = Builder.CreateCall(&Txfunc, Values);
  Call->setCallingConv(Txfunc.getCallingConv());
  Call->setAttributes(Txfunc.getAttributes().removeFnAttributes(Context));
  Builder.CreateRetVoid();
  return Resume;
}

/// struct hf_justdo_function of the ABI header, field by field.
static StructType *descriptorType(LLVMContext &Context) {
  Type *Word32 = Type::getInt32Ty(Context), *Word64 = Type::getInt64Ty(Context);
  Type *Pointer = PointerType::getUnqual(Context);
  static_assert(sizeof(hf_justdo_function) == 64 &&
                offsetof(hf_justdo_function, name) == 24 &&
                offsetof(hf_justdo_function, constants) == 56);
  return StructType::get(Word32, Word32, Word64, Word64, Pointer, Pointer,
                         Word32, Word32, Pointer, Pointer);
}

/// Emits struct hf_justdo_constants of the ABI header; null without constants.
static Constant *emitConstants(Function &Txfunc, const Addresses &Named) {
  Module &M = *Txfunc.getParent();
  auto *Pointer = PointerType::getUnqual(M.getContext());
  if (Named.empty())
    return ConstantPointerNull::get(Pointer);
  SmallVector<Constant *, 16> At{&imageStart(M)};
  append_range(At, Named);
  auto *T = ArrayType::get(Pointer, At.size());
  auto *Table = new GlobalVariable(M, T, true, GlobalValue::PrivateLinkage,
                                   ConstantArray::get(T, At),
                                   Txfunc.getName() + ".hf_addresses");
  Type *Word = Type::getInt64Ty(M.getContext());
  static_assert(sizeof(hf_justdo_constants) == 24 &&
                offsetof(hf_justdo_constants, at) == 16);
  auto *Contents = ConstantStruct::getAnon(
      {ConstantInt::get(Word, 0), ConstantInt::get(Word, At.size()), Table});
  auto *All = new GlobalVariable(M, Contents->getType(), false,
                                 GlobalValue::PrivateLinkage, Contents,
                                 Txfunc.getName() + ".hf_constants");
  for (GlobalVariable *Part : {Table, All})
    Part->setComdat(Txfunc.getComdat());
  return All;
}

namespace {

/// One txfunc, or one helper with a frame, on its way.
class Maker {
public:
  Maker(const SectionFunction &Of, const ArgumentBlock &Arguments,
        const SectionOptions &Options, bool HasTables,
        FunctionAnalysisManager &FAM)
      : Of(Of), Txfunc(Of.As == Role::Entry ? *Of.Original : *Of.Instance),
        F(*Of.Instance), Arguments(Arguments), Options(Options),
        HasTables(HasTables), FAM(FAM) {}

  /// First of all of them: what a function's version is includes what it calls.
  void prepare() {
    promoteLocals(F, FAM); // lengths show as constants
    makeFrameLocals(F, refuse());
    promoteLocals(F, FAM);
    showNumbersOfAddresses(F);
  }
  void setVersion() { Version = hashVersion(F, Arguments, Options); }

  /// Collects what the frame may hold the addresses of, or that of a callee.
  void collectNamed() {
    SmallPtrSet<const Function *, 8> Seen{&F};
    SmallVector<const Function *, 8> Left{&F};
    while (!Left.empty()) {
      const Function *One = Left.pop_back_val();
      addNamedAddresses(*One, Named);
      for (const Instruction &I : instructions(One))
        if (const auto *Call = dyn_cast<CallBase>(&I);
            Call && classifyCall(*Call).Kind == CallKind::Body &&
            Seen.insert(calledFunction(*Call)).second)
          Left.push_back(calledFunction(*Call));
    }
  }

  /// Returns its descriptor; null if it needs none, or is refused.
  GlobalVariable *run() {
    Steps Cut = cutSteps(F, Of.As, Options,
                         FAM.getResult<TargetLibraryAnalysis>(F), refuse());
    ConstantAddresses Addresses(F, Of.As, HasTables, refuse());
    if (Refused || Cut.All.empty()) {
      if (Of.As == Role::Helper) // it may read its caller's frame
        Addresses.rewrite();
      putBack();
      return nullptr;
    }
    SmallVector<ResumePoint, 16> Points;
    for (const Step &S : Cut.All)
      Points.push_back({S.Before, S.Behind, S.What == Step::End,
                        S.What == Step::Alloc ? S.At : nullptr});
    ResumePlan Plan = planResumption(F, Points, Of.As == Role::Helper);
    FrameLayout Frame = layOutFrame(F, Plan, Points);
    if (Frame.Bytes > HF_JUSTDO_FRAME_BYTES_MAX)
      refuse()("the frame takes " + Twine(Frame.Bytes) + " bytes, at most " +
                   Twine(HF_JUSTDO_FRAME_BYTES_MAX) +
                   " are possible: keep large locals in the pool",
               {});
    return emit(Cut, Plan, Frame, Addresses);
  }

private:
  const SectionFunction &Of;
  Function &Txfunc;
  Function &F;
  const ArgumentBlock &Arguments;
  const SectionOptions &Options;
  const bool HasTables; // sections mention constants that hold addresses
  FunctionAnalysisManager &FAM;
  Addresses Named;
  uint64_t Version = 0;
  bool Refused = false;

  std::function<void(const Twine &, const DebugLoc &)> refuse() {
    return [this](const Twine &What, const DebugLoc &Where) {
      Refused = true;
      reportError(*Of.Original, What + placeInWords(Of), Where);
    };
  }

  void putBack() {
    if (Of.As == Role::Entry)
      holdfast::putBack(Txfunc, F);
    else
      dropMemoryPromises(F);
  }

  GlobalVariable *emit(const Steps &Cut, const ResumePlan &Plan,
                       const FrameLayout &Frame, ConstantAddresses &Addresses) {
    LLVMContext &Context = F.getContext();
    Type *Word32 = Type::getInt32Ty(Context);
    Type *Word64 = Type::getInt64Ty(Context);
    auto *T = descriptorType(Context);
    GlobalVariable *Descriptor =
        emitDescriptor(Txfunc, *Options.Engine, *ConstantAggregateZero::get(T));
    std::string Where = placeInSource(*Of.Original, F),
                Name = recordName(Txfunc);
    emitResumption(F, Options, *Descriptor, Cut, Plan, Frame, Addresses,
                   Arguments);
    putBack();
    Constant *Fields[] = {
        ConstantInt::get(Word32, HF_ABI_VERSION),
        ConstantInt::get(Word32, std::max<uint64_t>(Frame.Bytes, 1)),
        ConstantInt::get(Word64, xxh3_64bits(Name)),
        ConstantInt::get(Word64, Version),
        emitText(Txfunc, Name),
        emitText(Txfunc, Where),
        ConstantInt::get(Word32, Cut.All.size()),
        ConstantInt::get(Word32, 0),
        Of.As == Role::Entry
            ? (Constant *)emitResume(Txfunc)
            : ConstantPointerNull::get(PointerType::getUnqual(Context)),
        emitConstants(Txfunc, Named)};
    Descriptor->setInitializer(ConstantStruct::get(T, Fields));
    return Descriptor;
  }
};

} // namespace

void makeResumable(const Sections &All, ArrayRef<ArgumentBlock> Blocks,
                   FunctionAnalysisManager &FAM,
                   SmallVectorImpl<GlobalVariable *> &Descriptors) {
  static const ArgumentBlock None; // of a helper: its callers pass them again
  bool HasTables = any_of(All.Functions, [](const auto &F) {
    return mentionsTables(*F->Instance);
  });
  std::vector<Maker> Makers;
  for (size_t I = 0; I != All.Functions.size(); ++I)
    Makers.emplace_back(*All.Functions[I], I < Blocks.size() ? Blocks[I] : None,
                        All.Options, HasTables, FAM);
  for (Maker &Each : Makers)
    Each.prepare();
  for (Maker &Each : Makers)
    Each.setVersion();
  for (Maker &Each : Makers)
    Each.collectNamed();
  for (Maker &Each : Makers)
    if (GlobalVariable *Descriptor = Each.run())
      Descriptors.push_back(Descriptor);
}

} // namespace holdfast
