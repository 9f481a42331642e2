// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members that recovery finds again (holdfast/author/derived.hpp), on what clang has made: addresses of members still bear
// the type of their object. Later the optimiser would make numbers of them.
//
// 1. Calls of hf_derived_member() say which members these are: the first argument is an address behind an object,
//    computed in the object's type, the second that of the member in it. They are no calls: all are taken out.
// 2. Before each store that names such a member, with all of its bytes, hf_lazy() is called, as if the program had
//    written hf::lazy(x->member) = v.
//
// What does not name the member (through a reference, by a copy of the object) stays logged, which is right: that the
// store is lazy is the program's word, and what it would be if nothing were said costs time only.
#ifndef HOLDFAST_COMPILER_LAZYMEMBERS_H
#define HOLDFAST_COMPILER_LAZYMEMBERS_H

#include "llvm/IR/PassManager.h"

namespace holdfast {

/// Runs at the pipeline's start, before bodies of sections are hidden.
struct LazyMembersPass : llvm::PassInfoMixin<LazyMembersPass> {
  llvm::PreservedAnalyses run(llvm::Module &M, llvm::ModuleAnalysisManager &);
  static bool isRequired() { return true; }
};

} // namespace holdfast

#endif
