// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses of constants and functions in a section that resumes: the next process
// has them elsewhere.
#ifndef HOLDFAST_COMPILER_CONSTANTADDRESSES_H
#define HOLDFAST_COMPILER_CONSTANTADDRESSES_H

#include "analysis/Sections.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace holdfast {

/// The linker's name for where the program, or the shared library, begins.
inline constexpr llvm::StringLiteral ImageStart = "__ehdr_start";
llvm::GlobalVariable &imageStart(llvm::Module &M);

/// Whether the function mentions a constant that holds addresses.
bool mentionsTables(const llvm::Function &F);

using Addresses = llvm::SetVector<llvm::Constant *>;
/// Adds the constants and functions that the function names, and those that
/// constants among them name: its frame may hold their addresses.
void addNamedAddresses(const llvm::Function &F, Addresses &To);

/// Whether the pointer, in a function of a section, may be a constant's address that
/// was kept: in a variable or by the caller.
bool mayBeKept(const llvm::Value &Pointer, bool IsEntry);

/// Turns numbers that are made of constants' addresses into instructions.
void showNumbersOfAddresses(llvm::Function &F);

class ConstantAddresses {
public:
  using Report =
      llvm::function_ref<void(const llvm::Twine &, const llvm::DebugLoc &)>;

  /// Looks at a function as the user wrote it. 'HasTables': sections mention
  /// constants that hold addresses. 'Refuse' receives what cannot be kept.
  ConstantAddresses(llvm::Function &F, Role As, bool HasTables, Report Refuse);

  /// Whether the register may hold one.
  bool mayHold(const llvm::Value &V) const;

  /// Turns a register, of any type, into its form in memory, and back.
  llvm::Value *encoded(llvm::IRBuilder<> &At, llvm::Value *V) const;
  llvm::Value *decoded(llvm::IRBuilder<> &At, llvm::Value *V) const;

  /// Whether what this stores goes to memory encoded. Its step does that, which
  /// takes its place.
  bool takeStore(llvm::StoreInst &Store) { return Stores.remove(&Store); }
  /// 'Again' computes what 'Of' did.
  void addCopy(llvm::Instruction &Of, llvm::Instruction &Again);

  /// Rewrites the accesses: last of all that is done to the function.
  void rewrite();

private:
  llvm::Module &M;
  const llvm::DataLayout &Layout;
  const bool IsEntry;
  llvm::SetVector<llvm::LoadInst *> Loads;
  llvm::SetVector<llvm::StoreInst *> Stores;
  llvm::SetVector<llvm::Instruction *> Numbers; // of addresses
  llvm::SetVector<llvm::CastInst *> Pointers;   // of numbers
  /// At which distances a copy of a constant holds them.
  llvm::MapVector<llvm::MemTransferInst *, llvm::SmallVector<uint64_t, 4>>
      Copies;

  bool leadsToPool(const llvm::Value *Address) const;
  bool mayBeFrame(const llvm::Value *Address) const;
  void visitLoad(llvm::LoadInst &Load, Report Refuse);
  void visitCopy(llvm::MemTransferInst &Copy, bool HasTables, Report Refuse);
  llvm::Value *moved(llvm::IRBuilder<> &At, llvm::Value *Word,
                     llvm::Constant *From, llvm::Constant *To) const;
  llvm::Value *translated(llvm::IRBuilder<> &At, llvm::Value *V,
                          llvm::Constant *From, llvm::Constant *To) const;
  llvm::Constant *image() const;
  llvm::Constant *mark() const;
};

} // namespace holdfast

#endif
