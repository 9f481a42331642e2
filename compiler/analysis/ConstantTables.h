// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where constants hold addresses, and which of their bytes an access may meet.
#ifndef HOLDFAST_COMPILER_CONSTANTTABLES_H
#define HOLDFAST_COMPILER_CONSTANTTABLES_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"

namespace holdfast {

/// Bytes of an object: 'Length' of them, from Offset plus any multiple of
/// 'Stride' on, plus those of each array that is walked.
struct Extent {
  /// Elements of an array, and how far apart they are.
  struct Array {
    uint64_t Stride, Count;
    bool operator==(const Array &) const = default;
  };
  int64_t Offset = 0;
  uint64_t Stride = 0; ///< 0: no multiple
  uint64_t Length = 0; ///< 0: nobody knows how many
  llvm::SmallVector<Array, 2> Arrays = {};

  bool isOnePlace() const { return Stride == 0 && Arrays.empty() && Length; }
  /// Whether it may meet the eight bytes from 'At' on.
  bool meetsWord(int64_t At) const;
  bool operator==(const Extent &) const = default;
};

/// Whether it is, or is made of, the address of a variable or function.
bool isOfAddress(const llvm::Constant *C);

/// The offsets at which a constant's initialiser, if it is seen, holds
/// addresses. The difference of two addresses is not one.
llvm::SmallVector<uint64_t, 4> addressesIn(const llvm::GlobalVariable &Global);

/// Calls 'Visit' with each object that 'Address' may lead to, and with the bytes
/// there of an access at 'At' relative to it: through offsets, choices, and the
/// slots of unoptimised code. A call that returns an address counts as an object.
void findObjects(
    const llvm::Value *Address, const Extent &At,
    llvm::function_ref<void(const llvm::Value &Object, const Extent &At)>
        Visit);

/// The bytes that 'Address' and 'Length' name of the object that it is computed
/// from; if there are several objects, of unknown length.
Extent whereIn(const llvm::Value *Address, uint64_t Length);

/// Returns the place of 'Part' of an object that begins at 'Base' of another.
Extent moved(Extent Base, const Extent &Part);

/// Collects what is stored to a slot of unoptimised code; false if somebody else
/// may store there.
bool collectSpilled(const llvm::AllocaInst &Slot,
                    llvm::SmallVectorImpl<const llvm::Value *> &Stored);

} // namespace holdfast

#endif
