// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks through the types of objects that a pool stores, and refuses what the
// next process cannot use. The headers instantiate hf::detail::stored<T> for
// each such T.
//
// A type is looked through by its bases and members. A class of the standard
// library is looked through by its template arguments, because its members are
// its own affair. A member that is marked HF_VOLATILE_OK is passed by: the
// program sets it anew after each open.
#ifndef HOLDFAST_SYNTAX_STORED_TYPES_H
#define HOLDFAST_SYNTAX_STORED_TYPES_H

#include "clang/AST/ASTContext.h"
#include "clang/Basic/Diagnostic.h"

namespace holdfast {

void checkStoredTypes(clang::ASTContext &Context,
                      clang::DiagnosticsEngine &Diagnostics);

} // namespace holdfast

#endif
