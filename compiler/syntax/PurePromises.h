// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether functions that are marked HF_PURE keep that promise, as far as their
// text shows: one has a result, and stores neither to what it was given nor to
// variables that outlive its call. Stores are assignments, std::memcpy and its
// kind, std::swap, std::exchange, placement new. Two are believed: an assignment
// to a variable that outlives the call, which may keep a result; and a store
// through a pointer of its own, which may lead to a local variable.
#ifndef HOLDFAST_SYNTAX_PURE_PROMISES_H
#define HOLDFAST_SYNTAX_PURE_PROMISES_H

#include "clang/AST/ASTContext.h"
#include "clang/Basic/Diagnostic.h"

namespace holdfast {

void checkPurePromises(clang::ASTContext &Context,
                       clang::DiagnosticsEngine &Diagnostics);

} // namespace holdfast

#endif
