// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What re-execution cannot tolerate is a compile error.
#ifndef HOLDFAST_COMPILER_SECTIONRULES_H
#define HOLDFAST_COMPILER_SECTIONRULES_H

#include "analysis/Arguments.h"
#include "analysis/Sections.h"

#include "llvm/IR/DiagnosticInfo.h"

namespace holdfast {

/// Reports every violation through the module's context, as errors at their
/// source lines. Functions that no section may ever call are not reported: they
/// keep their reason. Returns whether no error was reported. 'Warns': what may be
/// wrong is reported, too.
bool checkSections(const Sections &All, bool Warns);

/// Returns why 'F' cannot be a section's own function; null when it can.
const char *whyUnfit(const llvm::Function &F);

/// Reports what makes 'F' unfit as a section's own function. Returns whether it
/// is fit.
bool checkSignature(const llvm::Function &F);

/// Reports a record of arguments that no log takes. Returns whether it fits.
bool checkArguments(const llvm::Function &F, const ArgumentBlock &Block);

/// Returns what the messages about a function of a section end with.
std::string placeInWords(const SectionFunction &F);

/// Returns the place that a message about 'Where' in 'F' should name: where the
/// user's own code comes to it, when it lies in a library's header.
llvm::DebugLoc usersLine(const SectionFunction &F, const llvm::DebugLoc &Where);

/// Reports an error of the compilation, or a warning, at a line of 'F'; without
/// line tables, at 'F'.
void reportError(const llvm::Function &F, const llvm::Twine &Message,
                 llvm::DebugLoc Where,
                 llvm::DiagnosticSeverity Severity = llvm::DS_Error);

} // namespace holdfast

#endif
