// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a store of a section goes, as far as that is certain.
#ifndef HOLDFAST_COMPILER_STOREPLACES_H
#define HOLDFAST_COMPILER_STOREPLACES_H

#include "analysis/Origin.h"
#include "analysis/Sections.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/IR/Instructions.h"

namespace holdfast {

struct StorePlace {
  enum Kind { Elsewhere, Local, Pool, Parameter } Is = Elsewhere;
  unsigned Index = 0;
  bool operator==(const StorePlace &) const = default;
};

class StorePlaces {
public:
  explicit StorePlaces(const FreshFunctions &Fresh) : Fresh(Fresh) {}

  /// Later questions are about this function's stores.
  void begin(const SectionFunction &F) {
    Current = &F;
    Known.clear();
  }

  /// The pool is what an entry gets or allocates, and what pointers reach from
  /// there.
  StorePlace of(const llvm::Value *Address) { return of(Address, 0); }

private:
  const FreshFunctions &Fresh;
  const SectionFunction *Current = nullptr;
  // By what was followed to get there: a walk in a loop has ways
  // without number to one object.
  llvm::DenseMap<std::pair<const llvm::Value *, unsigned>, StorePlace> Known;

  StorePlace of(const llvm::Value *Address, unsigned Depth);
  StorePlace ofObject(const llvm::Value *Object, unsigned Depth);
  StorePlace ofLoaded(const llvm::LoadInst &Load, unsigned Depth);
};

} // namespace holdfast

#endif
