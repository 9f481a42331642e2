// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_CLONESECTIONS_H
#define HOLDFAST_COMPILER_CLONESECTIONS_H

#include "analysis/Sections.h"

namespace holdfast {

/// Makes the instances of all functions that sections of 'Txfuncs' run: one
/// Entry instance of each txfunc, first and in the order given, and one Helper
/// instance of each function that is called. The originals stay as they are.
Sections cloneSections(llvm::ArrayRef<llvm::Function *> Txfuncs,
                       const SectionOptions &Options);

} // namespace holdfast

#endif
