// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members that recovery finds again (holdfast/author/derived.hpp). The pass runs on clang's own output, where addresses of
// members still have the type of their object. Later the optimiser would make numbers of them.
//
// 1. Calls of hf_derived_member() say which members these are: the first argument is an address behind an object,
//    computed in the object's type, the second that of the member in it. They are no calls: all are taken out.
// 2. Before each store that names such a member, with all of its bytes, hf_lazy() is called, as if the program had
//    written hf::lazy(x->member) = v.
//
// A store that does not name the member (through a reference, by a copy of the object) stays logged. That is right: only
// the program can say that a store is lazy, and a log that is not needed costs time alone.
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
