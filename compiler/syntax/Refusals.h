// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which types cannot live in a pool, by name or by nature, why, and what to
// use in their place.
#ifndef HOLDFAST_SYNTAX_REFUSALS_H
#define HOLDFAST_SYNTAX_REFUSALS_H

#include "clang/AST/Type.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>

namespace holdfast {

/// Why the type itself cannot live in a pool, and what to use instead: the
/// second half of a sentence. Nothing: its members and arguments decide.
std::optional<std::string> refusal(clang::QualType Type);

/// Whether it is a library's: its members are its own affair, and only what it
/// is a template of matters.
bool isOfLibrary(const clang::CXXRecordDecl &Record);

/// The types that it is a template of; none if it is no template's.
llvm::SmallVector<clang::QualType, 4>
templateArguments(const clang::CXXRecordDecl &Record);

} // namespace holdfast

#endif
