// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A txfunc whose section resumes is one function, which the runtime calls again to
// let it go on (EmitResumption.cpp). Its descriptor has what that takes: its
// name, its version, how large its frame is, and a function without arguments that
// calls it. A helper that recurses has a frame, too, and a descriptor; those that call it
// call it again.
#include "transform/MakeResumable.h"
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
      Attribute::ByVal,         Attribute::StructRet, Attribute::ZExt,
      Attribute::SExt,          Attribute::InReg,     Attribute::Alignment,
      Attribute::StackAlignment};
  LLVMContext &Context = F.getContext();
  for (unsigned I = 0; I != F.arg_size(); ++I) {
    AttrBuilder Builder(Context);
    AttributeSet Given = F.getAttributes().getParamAttrs(I);
    bool InMemory = Given.hasAttribute(Attribute::ByVal) ||
                    Given.hasAttribute(Attribute::StructRet);
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
  for (StringRef Kind : {"target-cpu", "target-features", "frame-pointer"})
    if (Txfunc.hasFnAttribute(Kind))
      Resume->addFnAttr(Txfunc.getFnAttribute(Kind));
  IRBuilder<> Builder(BasicBlock::Create(Context, "", Resume));
  SmallVector<Value *, 8> Values;
  for (Argument &A : Txfunc.args()) {
    Type *T = A.hasByValAttr()       ? A.getParamByValType()
              : A.hasStructRetAttr() ? A.getParamStructRetType()
                                     : nullptr;
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
  static_assert(sizeof(hf_justdo_function) == 56 &&
                offsetof(hf_justdo_function, name) == 24 &&
                offsetof(hf_justdo_function, resume) == 48);
  return StructType::get(Word32, Word32, Word64, Word64, Pointer, Pointer,
                         Word32, Word32, Pointer);
}

namespace {

/// One txfunc, or one helper with a frame, on its way.
class Maker {
public:
  Maker(const SectionFunction &Of, const ArgumentBlock &Arguments,
        const SectionOptions &Options, FunctionAnalysisManager &FAM)
      : Of(Of), Txfunc(Of.As == Role::Entry ? *Of.Original : *Of.Instance),
        F(*Of.Instance), Arguments(Arguments), Options(Options), FAM(FAM) {}

  /// First of all of them: what a function's version is includes what it calls.
  void prepare() {
    promoteLocals(F, FAM); // lengths show as constants
    makeFrameLocals(F, refuse());
    promoteLocals(F, FAM);
  }
  void setVersion() { Version = hashVersion(F, Arguments, Options); }

  /// Returns its descriptor; null if it needs none, or is refused.
  GlobalVariable *run() {
    Steps Cut = cutSteps(F, Of.As, Options,
                         FAM.getResult<TargetLibraryAnalysis>(F), refuse());
    if (Refused || Cut.All.empty()) {
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
    return emit(Cut, Plan, Frame);
  }

private:
  const SectionFunction &Of;
  Function &Txfunc;
  Function &F;
  const ArgumentBlock &Arguments;
  const SectionOptions &Options;
  FunctionAnalysisManager &FAM;
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
                       const FrameLayout &Frame) {
    LLVMContext &Context = F.getContext();
    Type *Word32 = Type::getInt32Ty(Context);
    Type *Word64 = Type::getInt64Ty(Context);
    auto *T = descriptorType(Context);
    GlobalVariable *Descriptor =
        emitDescriptor(Txfunc, *Options.Engine, *ConstantAggregateZero::get(T));
    std::string Where = placeInSource(*Of.Original, F),
                Name = recordName(Txfunc);
    emitResumption(F, Of.As, Options, *Descriptor, Cut, Plan, Frame, Arguments);
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
            : ConstantPointerNull::get(PointerType::getUnqual(Context))};
    Descriptor->setInitializer(ConstantStruct::get(T, Fields));
    return Descriptor;
  }
};

} // namespace

void makeResumable(const Sections &All, ArrayRef<ArgumentBlock> Blocks,
                   FunctionAnalysisManager &FAM,
                   SmallVectorImpl<GlobalVariable *> &Descriptors) {
  static const ArgumentBlock None; // of a helper: its callers pass them again
  std::vector<Maker> Makers;
  for (size_t I = 0; I != All.Functions.size(); ++I)
    Makers.emplace_back(*All.Functions[I], I < Blocks.size() ? Blocks[I] : None,
                        All.Options, FAM);
  for (Maker &Each : Makers)
    Each.prepare();
  for (Maker &Each : Makers)
    Each.setVersion();
  for (Maker &Each : Makers)
    if (GlobalVariable *Descriptor = Each.run())
      Descriptors.push_back(Descriptor);
}

} // namespace holdfast
