// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Back pointers (SLPMT IV-B, pattern 2, its narrow case). A store 'child->parent = p' repeats what a store of 'child'
// to a word of 'p' says. A walk from the structure's root finds the parent again, so the program may call the store
// lazy.
//
// This is a suggestion, not a proof. One function does not show what recovery can walk, or whether a later section
// removes the link. The crash checker judges a program that follows the suggestion.
#ifndef HOLDFAST_COMPILER_BACKPOINTERS_H
#define HOLDFAST_COMPILER_BACKPOINTERS_H

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"

#include <map>
#include <optional>
#include <set>

namespace holdfast {

class BackPointers {
public:
  explicit BackPointers(llvm::Function &F);

  /// Returns a store that links to the object to which 'Back' is a store, from
  /// the object that 'Back' names; null unless there is one on every way through
  /// 'Back' on which that is not null.
  ///
  /// Either of the two says what the other says. The pointer back is the one
  /// whose member answers to several: a parent to left and right. Of a list's
  /// 'next' and 'previous' neither is.
  const llvm::StoreInst *linkOf(const llvm::StoreInst &Back) const;

private:
  using Member = std::optional<int64_t>; ///< its offset; none: any of several
  static Member memberOf(const llvm::StoreInst &S, const llvm::Value *Object);
  const llvm::StoreInst *answerTo(const llvm::StoreInst &S) const;
  size_t answersTo(Member M) const;

  llvm::DominatorTree Tree;
  llvm::SmallVector<const llvm::StoreInst *, 16> Stores; ///< of pointers
  llvm::DenseMap<const llvm::StoreInst *, const llvm::StoreInst *> Answers;
  std::map<Member, std::set<Member>> MembersThatAnswer;
};

} // namespace holdfast

#endif
