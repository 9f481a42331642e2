// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A function with a computed goto cannot be copied for sections: the table of its
// labels' addresses would still lead into the original. So the labels are numbered:
// their addresses become those numbers, in the function and in its tables, and the
// goto becomes a switch. A number is the same in every process, unlike an address.
#include "transform/ComputedGotos.h"

#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace holdfast {

namespace {

/// Numbers of labels whose address somebody uses, from 1: no label is null.
DenseMap<const BasicBlock *, ConstantInt *> numberLabels(Function &F,
                                                         IntegerType *Number) {
  DenseMap<const BasicBlock *, ConstantInt *> Numbers;
  for (BasicBlock &Block : F) {
    BlockAddress *Address = BlockAddress::lookup(&Block);
    if (!Address)
      continue;
    Address->removeDeadConstantUsers();
    auto *Its = ConstantInt::get(Number, Numbers.size() + 1);
    Address->replaceAllUsesWith(
        ConstantExpr::getIntToPtr(Its, Address->getType()));
    Address->destroyConstant();
    Numbers[&Block] = cast<ConstantInt>(Its);
  }
  return Numbers;
}

} // namespace

void expandComputedGotos(Function &F) {
  SmallVector<IndirectBrInst *, 4> Gotos;
  for (BasicBlock &Block : F) {
    if (isa_and_nonnull<CallBrInst>(Block.getTerminator()))
      return; // refused
    if (auto *Goto = dyn_cast_or_null<IndirectBrInst>(Block.getTerminator()))
      Gotos.push_back(Goto);
  }
  if (Gotos.empty())
    return;
  auto *Number = cast<IntegerType>(
      F.getDataLayout().getIntPtrType(Gotos[0]->getAddress()->getType()));
  const DenseMap<const BasicBlock *, ConstantInt *> Numbers =
      numberLabels(F, Number);
  auto *Elsewhere = BasicBlock::Create(F.getContext(), "no_label", &F);
  new UnreachableInst(F.getContext(), Elsewhere);
  for (IndirectBrInst *Goto : Gotos) {
    BasicBlock *From = Goto->getParent();
    IRBuilder<> Builder(Goto);
    SwitchInst *Switch =
        Builder.CreateSwitch(Builder.CreatePtrToInt(Goto->getAddress(), Number),
                             Elsewhere, Goto->getNumDestinations());
    SmallPtrSet<const BasicBlock *, 8> Seen;
    for (BasicBlock *To : Goto->successors())
      if (ConstantInt *Its = Numbers.lookup(To); Its && Seen.insert(To).second)
        Switch->addCase(Its, To);
      else
        To->removePredecessor(From, /*KeepOneInputPHIs=*/true);
    Goto->eraseFromParent();
  }
}

} // namespace holdfast
