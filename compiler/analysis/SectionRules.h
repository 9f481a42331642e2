// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What re-execution cannot tolerate is a compile error (SPEC C17).
#ifndef HOLDFAST_COMPILER_SECTIONRULES_H
#define HOLDFAST_COMPILER_SECTIONRULES_H

#include "analysis/Sections.h"

namespace holdfast {

/// Reports every violation through the module's context, as errors at their
/// source lines. Returns whether there was none.
bool checkSections(const Sections &All);

/// Reports what makes 'F' unfit as a section's own function. Returns whether it
/// is fit.
bool checkSignature(const llvm::Function &F);

} // namespace holdfast

#endif
