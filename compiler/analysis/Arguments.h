// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the arguments of a section lie in its packed block.
#ifndef HOLDFAST_COMPILER_ARGUMENTS_H
#define HOLDFAST_COMPILER_ARGUMENTS_H

#include "holdfast/abi/holdfast_abi.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/Function.h"

namespace holdfast {

/// A pointer inside a by-value aggregate that the function reads there.
struct PointerField {
  uint64_t OffsetBytes; ///< from the aggregate's start
  bool Followed;        ///< used otherwise than by hf_vlog_preserve
  bool Always; ///< the memory behind it is touched whenever the function runs
};

struct PackedArgument {
  unsigned Index;   ///< which parameter
  llvm::Type *Type; ///< of the bytes: the pointee for a by-value aggregate
  uint64_t OffsetBytes;
  uint64_t SizeBytes;
  hf_arg_kind Kind;
  llvm::SmallVector<PointerField, 4> Fields; ///< by offset; of an aggregate
};

struct ArgumentBlock {
  llvm::SmallVector<PackedArgument, 8> Arguments;
  uint64_t Bytes = 0;
  bool HasPadding = false;
};

/// The pointers that 'F' reads from its by-value aggregate 'A', which is in memory
/// or in registers, as far as their offsets are constant, by offset.
llvm::SmallVector<PointerField, 4> findPointerFields(const llvm::Argument &A);

/// Whether the pointer is used for nothing but hf_vlog_preserve's first
/// argument (and comparisons with null), there at least once.
bool isOnlyPreserved(const llvm::Argument &A);

/// Whether the function is compiled for ARM64.
bool isForArm64(const llvm::Function &F);

/// Lays out the arguments of 'F', whose body decides what its pointers are for.
/// A hidden result pointer (sret) is not recorded: re-execution has nowhere to
/// return to.
ArgumentBlock layOutArguments(llvm::Function &F);

} // namespace holdfast

#endif
