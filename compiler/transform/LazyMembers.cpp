// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "transform/LazyMembers.h"
#include "analysis/Names.h"

#include "llvm/ADT/Statistic.h"
#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

#include <map>
#include <optional>

#define DEBUG_TYPE "holdfast"

using namespace llvm;

STATISTIC(NumLazy, "Stores to derived members");

namespace holdfast {

namespace {

/// A member of a type, and how many bytes it has.
using Member = std::pair<const Type *, int64_t>;
using Members = std::map<Member, uint64_t>;

std::optional<int64_t> constantOffset(const GEPOperator &Gep,
                                      const DataLayout &Layout) {
  APInt Offset(Layout.getIndexTypeSizeInBits(Gep.getType()), 0);
  if (!Gep.accumulateConstantOffset(Layout, Offset))
    return std::nullopt;
  return Offset.getSExtValue();
}

/// Returns the member that an address names: of a constant place in the type that
/// the address is computed in.
std::optional<Member> namedBy(const Value *Address, const DataLayout &Layout) {
  const auto *Gep = dyn_cast<GEPOperator>(Address);
  if (!Gep || !isa<StructType>(Gep->getSourceElementType()))
    return std::nullopt;
  if (std::optional<int64_t> Offset = constantOffset(*Gep, Layout))
    return Member{Gep->getSourceElementType(), *Offset};
  return std::nullopt;
}

/// Returns the members that the program declares; removes the calls that do so.
Members takeDeclared(Module &M) {
  Members Declared;
  Function *Tells = M.getFunction(DerivedMemberName);
  if (!Tells)
    return Declared;
  for (User *By : make_early_inc_range(Tells->users())) {
    auto *Call = cast<CallBase>(By);
    const auto *Behind = cast<GEPOperator>(Call->getArgOperand(0));
    int64_t Offset = 0;
    if (const auto *Of = dyn_cast<GEPOperator>(Call->getArgOperand(1)))
      Offset = constantOffset(*Of, M.getDataLayout()).value();
    Declared[{Behind->getSourceElementType(), Offset}] =
        cast<ConstantInt>(Call->getArgOperand(2))->getZExtValue();
    Call->eraseFromParent();
  }
  Tells->eraseFromParent();
  return Declared;
}

} // namespace

PreservedAnalyses LazyMembersPass::run(Module &M, ModuleAnalysisManager &) {
  const Members Declared = takeDeclared(M);
  if (Declared.empty())
    return PreservedAnalyses::all();
  const DataLayout &Layout = M.getDataLayout();
  FunctionCallee Lazy = M.getOrInsertFunction(
      LazyName, Type::getVoidTy(M.getContext()),
      PointerType::getUnqual(M.getContext()), Type::getInt64Ty(M.getContext()));
  cast<Function>(Lazy.getCallee())->setDoesNotThrow();
  SmallVector<std::pair<StoreInst *, uint64_t>, 32> Found;
  for (Function &F : M)
    for (Instruction &I : instructions(F))
      if (auto *S = dyn_cast<StoreInst>(&I))
        if (auto Of = namedBy(S->getPointerOperand(), Layout))
          if (auto It = Declared.find(*Of); It != Declared.end())
            if (Layout.getTypeStoreSize(S->getValueOperand()->getType()) ==
                It->second)
              Found.push_back({S, It->second});
  for (auto [S, Bytes] : Found) {
    IRBuilder<> Builder(S);
    Builder.CreateCall(Lazy, {S->getPointerOperand(), Builder.getInt64(Bytes)})
        ->setDoesNotThrow();
    OptimizationRemarkEmitter(S->getFunction()).emit([S = S] {
      return OptimizationRemark(DEBUG_TYPE, "Lazy", S)
             << "is lazy: hf::derived finds the member again";
    });
    ++NumLazy;
  }
  return PreservedAnalyses::none();
}

} // namespace holdfast
