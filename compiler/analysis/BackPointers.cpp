// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "analysis/BackPointers.h"
#include "analysis/LLVMVersions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Operator.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace holdfast {

using Links = SmallPtrSet<const Instruction *, 4>;

/// Whether the address is of the object at 'Base', whichever its member; of a
/// choice of addresses, whether one of them is.
static bool isIn(const Value *Address, const Value *Base, unsigned Depth = 3) {
  while (const auto *Gep = dyn_cast<GEPOperator>(Address))
    Address = Gep->getPointerOperand();
  if (Address == Base || Depth == 0)
    return Address == Base;
  auto IsIn = [&](const Use &U) { return isIn(U.get(), Base, Depth - 1); };
  if (const auto *Phi = dyn_cast<PHINode>(Address))
    return any_of(Phi->incoming_values(), IsIn);
  if (const auto *Choice = dyn_cast<SelectInst>(Address))
    return IsIn(Choice->getOperandUse(1)) || IsIn(Choice->getOperandUse(2));
  return false;
}

static const Value *objectOf(const StoreInst &S) {
  const Value *Address = S.getPointerOperand();
  while (const auto *Gep = dyn_cast<GEPOperator>(Address))
    Address = Gep->getPointerOperand();
  return Address;
}

/// Whether the edge is taken only where 'Named' is null: nothing links from there.
static bool saysNull(const BasicBlock *From, const BasicBlock *To,
                     const Value *Named) {
  ComparedBy Is;
  const BasicBlock *Yes, *No;
  if (!match(From->getTerminator(),
             m_Br(m_Cmp(Is, m_Specific(Named), m_Zero()), m_BasicBlock(Yes),
                  m_BasicBlock(No))) ||
      Yes == No)
    return false;
  return (Is == CmpInst::ICMP_EQ && To == Yes) ||
         (Is == CmpInst::ICMP_NE && To == No);
}

/// Whether every way from 'Back' on meets one of the links, with the same
/// instances of both objects, before the function ends.
static bool alwaysLinkedLater(const StoreInst &Back, const Links &Found) {
  const Value *Named = Back.getValueOperand(), *Object = objectOf(Back);
  auto AnotherInstance = [&](const BasicBlock *Block) {
    return any_of(ArrayRef<const Value *>{Named, Object}, [&](const Value *V) {
      const auto *I = dyn_cast<Instruction>(V);
      return I && I->getParent() == Block;
    });
  };
  auto LinksIn = [&](BasicBlock::const_iterator From, const BasicBlock *Block) {
    return any_of(make_range(From, Block->end()),
                  [&](const Instruction &I) { return Found.contains(&I); });
  };
  const BasicBlock *First = Back.getParent();
  if (LinksIn(Back.getIterator(), First))
    return true;
  SmallPtrSet<const BasicBlock *, 16> Seen;
  SmallVector<const BasicBlock *, 16> Work{First};
  while (!Work.empty()) {
    const BasicBlock *Block = Work.pop_back_val();
    if (succ_empty(Block))
      return false;
    for (const BasicBlock *Next : successors(Block)) {
      if (saysNull(Block, Next, Named) || !Seen.insert(Next).second)
        continue;
      if (AnotherInstance(Next))
        return false;
      if (!LinksIn(Next->begin(), Next))
        Work.push_back(Next);
    }
  }
  return true;
}

BackPointers::BackPointers(Function &F) : Tree(F) {
  for (const Instruction &I : instructions(F))
    if (const auto *S = dyn_cast<StoreInst>(&I);
        S && S->getValueOperand()->getType()->isPointerTy())
      Stores.push_back(S);
  for (const StoreInst *S : Stores)
    if (const StoreInst *Answer = answerTo(*S)) {
      Answers[S] = Answer;
      MembersThatAnswer[memberOf(*S, objectOf(*S))].insert(
          memberOf(*Answer, S->getValueOperand()));
    }
}

BackPointers::Member BackPointers::memberOf(const StoreInst &S,
                                            const Value *Object) {
  APInt Offset(64, 0);
  const Value *Base = S.getPointerOperand()->stripAndAccumulateConstantOffsets(
      S.getDataLayout(), Offset, /*AllowNonInbounds=*/true);
  if (Base != Object)
    return std::nullopt;
  return Offset.getSExtValue();
}

const StoreInst *BackPointers::answerTo(const StoreInst &S) const {
  const Value *Named = S.getValueOperand(), *Object = objectOf(S);
  if (isa<Constant>(Named) || Named == Object)
    return nullptr;
  Links Found;
  for (const StoreInst *Other : Stores)
    if (Other != &S && Other->getValueOperand() == Object &&
        isIn(Other->getPointerOperand(), Named)) {
      if (Tree.dominates(Other, &S))
        return Other;
      Found.insert(Other);
    }
  if (Found.empty() || !alwaysLinkedLater(S, Found))
    return nullptr;
  return *find_if(Stores,
                  [&](const StoreInst *O) { return Found.contains(O); });
}

size_t BackPointers::answersTo(Member M) const {
  auto It = MembersThatAnswer.find(M);
  if (It == MembersThatAnswer.end())
    return 0;
  // An index, or a choice of addresses, stands for two at least.
  return It->second.size() + It->second.count(std::nullopt);
}

const StoreInst *BackPointers::linkOf(const StoreInst &Back) const {
  const StoreInst *Answer = Answers.lookup(&Back);
  const Member Its = memberOf(Back, objectOf(Back));
  if (!Answer || !Its || answersTo(Its) < 2 ||
      answersTo(Its) <= answersTo(memberOf(*Answer, Back.getValueOperand())))
    return nullptr;
  return Answer;
}

} // namespace holdfast
