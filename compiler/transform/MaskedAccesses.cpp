// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 1. The processor's gathers, scatters and masked accesses become LLVM's own.
//    They are recognised by the types of their arguments: one intrinsic has the
//    same shape for every type of element.
// 2. LLVM's own are expanded by its own pass, which leaves none of them when it
//    knows no target.
#include "transform/MaskedAccesses.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/Utils/Local.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"

#include <numeric>

using namespace llvm;

namespace holdfast {

namespace {

/// Replaces one of the processor's intrinsics. What it does not know it leaves
/// alone, and returns false.
class Translator {
public:
  explicit Translator(IntrinsicInst &Call) : Call(Call), Builder(&Call) {}

  bool run(bool Loads) {
    StringRef Name = Call.getCalledFunction()->getName();
    if (!Name.consume_front("llvm.x86."))
      return false;
    if (Name == "sse2.maskmov.dqu")
      return store(argument(2), argument(1), argument(0));
    if (Name.starts_with("avx.maskstore.") ||
        Name.starts_with("avx2.maskstore."))
      return store(argument(0), argument(1), argument(2));
    if (Name.starts_with("avx512.mask.scatter"))
      return scatter();
    if (Name.starts_with("avx.ldu.") || Name == "sse3.ldu.dq")
      return replace(
          Builder.CreateAlignedLoad(Call.getType(), argument(0), Align(1)));
    if (!Loads)
      return false;
    if (Name.starts_with("avx.maskload.") || Name.starts_with("avx2.maskload."))
      return replace(Builder.CreateMaskedLoad(
          Call.getType(), argument(0), Align(1), signsOf(argument(1)),
          Constant::getNullValue(Call.getType())));
    if (Name.starts_with("avx2.gather.") ||
        Name.starts_with("avx512.mask.gather"))
      return gather();
    return false;
  }

private:
  IntrinsicInst &Call;
  IRBuilder<> Builder;

  Value *argument(unsigned A) const { return Call.getArgOperand(A); }

  static unsigned lanesOf(const Value *V) {
    return cast<FixedVectorType>(V->getType())->getNumElements();
  }

  bool replace(Value *New) {
    if (!Call.getType()->isVoidTy())
      Call.replaceAllUsesWith(New);
    Call.eraseFromParent();
    return true;
  }

  /// A lane is there where the sign of its mask's element is.
  Value *signsOf(Value *Mask) {
    auto *T = cast<VectorType>(Mask->getType());
    if (T->getElementType()->isIntegerTy(1))
      return Mask;
    auto *Integers = VectorType::getInteger(T);
    return Builder.CreateICmpSLT(Builder.CreateBitCast(Mask, Integers),
                                 Constant::getNullValue(Integers));
  }

  Value *first(Value *V, unsigned Lanes) {
    if (lanesOf(V) == Lanes)
      return V;
    SmallVector<int, 16> Kept(Lanes);
    std::iota(Kept.begin(), Kept.end(), 0);
    return Builder.CreateShuffleVector(V, Kept);
  }

  /// Base + index * scale: an index may be an address, and the base null.
  Value *addresses(Value *Base, Value *Index, Value *Scale, unsigned Lanes) {
    auto *Words = FixedVectorType::get(Builder.getInt64Ty(), Lanes);
    Value *Steps = Builder.CreateMul(
        Builder.CreateSExt(first(Index, Lanes), Words),
        Builder.CreateVectorSplat(
            Lanes, Builder.CreateZExt(Scale, Builder.getInt64Ty())));
    return Builder.CreateGEP(Builder.getInt8Ty(), Base, Steps);
  }

  /// (what lanes without a mask hold, base, indices, mask, scale). With fewer
  /// indices than elements the others become zero.
  bool gather() {
    if (!argument(3)->getType()->isVectorTy())
      return false; // an older form, which clang does not use
    auto *T = cast<FixedVectorType>(Call.getType());
    unsigned Lanes = std::min(T->getNumElements(), lanesOf(argument(2)));
    Value *Result = Builder.CreateMaskedGather(
        FixedVectorType::get(T->getElementType(), Lanes),
        addresses(argument(1), argument(2), argument(4), Lanes), Align(1),
        first(signsOf(argument(3)), Lanes), first(argument(0), Lanes));
    if (Lanes != T->getNumElements()) {
      SmallVector<int, 16> Widened(T->getNumElements(), Lanes);
      std::iota(Widened.begin(), Widened.begin() + Lanes, 0);
      Result = Builder.CreateShuffleVector(
          Result, Constant::getNullValue(Result->getType()), Widened);
    }
    return replace(Result);
  }

  /// (base, mask, indices, values, scale). Lanes are stored in their order.
  bool scatter() {
    if (!argument(1)->getType()->isVectorTy())
      return false;
    unsigned Lanes = std::min(lanesOf(argument(3)), lanesOf(argument(2)));
    return replace(Builder.CreateMaskedScatter(
        first(argument(3), Lanes),
        addresses(argument(0), argument(2), argument(4), Lanes), Align(1),
        first(signsOf(argument(1)), Lanes)));
  }

  bool store(Value *To, Value *Mask, Value *Stored) {
    return replace(
        Builder.CreateMaskedStore(Stored, To, Align(1), signsOf(Mask)));
  }
};

} // namespace

static bool isMasked(const Instruction &I, bool Loads) {
  const auto *Call = dyn_cast<IntrinsicInst>(&I);
  if (!Call)
    return false;
  switch (Call->getIntrinsicID()) {
  case Intrinsic::masked_store:
  case Intrinsic::masked_scatter:
  case Intrinsic::masked_compressstore:
    return true;
  case Intrinsic::masked_load:
  case Intrinsic::masked_gather:
  case Intrinsic::masked_expandload:
    return Loads;
  default:
    return false;
  }
}

void expandMasked(Function &F, bool Loads) {
  for (Instruction &I : make_early_inc_range(instructions(F)))
    if (auto *Call = dyn_cast<IntrinsicInst>(&I))
      Translator(*Call).run(Loads);
  if (none_of(instructions(F),
              [&](const Instruction &I) { return isMasked(I, Loads); }))
    return;
  FunctionAnalysisManager Analyses;
  Analyses.registerPass([] { return PassInstrumentationAnalysis(); });
  Analyses.registerPass([] { return TargetIRAnalysis(); });
  Analyses.registerPass([] { return DominatorTreeAnalysis(); });
  ScalarizeMaskedMemIntrinPass().run(F, Analyses);
}

void showAddressesFromNull(Function &F) {
  const DataLayout &Layout = F.getDataLayout();
  for (Instruction &I : make_early_inc_range(instructions(F))) {
    auto *Gep = dyn_cast<GetElementPtrInst>(&I);
    if (!Gep || !isa<ConstantPointerNull>(Gep->getPointerOperand()) ||
        Gep->getAddressSpace() != 0)
      continue;
    IRBuilder<> Builder(Gep);
    Builder.SetCurrentDebugLocation(Gep->getDebugLoc());
    Value *Distance = emitGEPOffset(&Builder, Layout, Gep);
    Value *Address = Builder.CreateIntToPtr(Distance, Gep->getType());
    Address->takeName(Gep);
    Gep->replaceAllUsesWith(Address);
    Gep->eraseFromParent();
  }
}

} // namespace holdfast
