// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a value comes from that may be an address, and what is known of a helper's.
#ifndef HOLDFAST_COMPILER_ADDRESSSOURCES_H
#define HOLDFAST_COMPILER_ADDRESSSOURCES_H

#include "analysis/ConstantTables.h"
#include "analysis/StorePlaces.h"

#include <string>

namespace holdfast {

struct Source {
  /// Held: a part of a constant, or of what a parameter leads to, holds it.
  enum Kind { Nothing, Neutral, Local, Fixed, Parameter, Held } Is = Nothing;
  unsigned Index = 0; ///< of a parameter
  const llvm::GlobalValue *Which =
      nullptr;    ///< of a fixed address, or that holds it
  Extent At = {}; ///< where it is held
  bool interesting() const { return Is > Neutral; }
  bool operator==(const Source &) const = default;
};

/// A store that a helper makes, or a copy of what 'Of' says. 'At': of what the
/// place is.
struct Fact {
  StorePlace To;
  Source Of;
  Extent At;
  bool operator==(const Fact &) const = default;
};

/// Where the address that a helper returns may lead: to a constant, or to what a
/// parameter leads to.
struct Lead {
  const llvm::GlobalVariable *Table;
  unsigned Index;
  Extent At;
  bool operator==(const Lead &) const = default;
};

struct Summary {
  llvm::SmallVector<Source, 2> Returned; ///< one for each element of a struct
  llvm::SmallVector<Lead, 2> Leads;
  llvm::SmallVector<Fact, 4> Stores;
  /// Stores to parameters' memory of what is of no interest.
  llvm::SmallVector<std::pair<unsigned, Extent>, 4> Others;
};

/// How many values it is stored or returned as.
unsigned partsOf(const llvm::Type *T);

/// Returns the source of a value that is one of the two.
Source join(const Source &A, const Source &B);

Source ofConstant(const llvm::Constant *C);

/// Whether only bits are left that an address has by its alignment: the same in
/// every process.
bool leavesAlignment(unsigned Opcode, const llvm::APInt &By);

/// Whether the call takes memory outside of the pool.
bool takesScratch(const llvm::CallBase &Call);

/// Whether it is the address of such memory.
bool isScratch(const Source &S);

/// For messages: its name, and what is wrong when it is stored to the pool.
std::string nameOf(const Source &S);
std::string whyStored(const Source &S);

} // namespace holdfast

#endif
