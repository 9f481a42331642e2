// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_CLONESECTIONS_H
#define HOLDFAST_COMPILER_CLONESECTIONS_H

#include "analysis/Sections.h"

namespace holdfast {

/// Makes the instances of all functions that sections of 'Txfuncs' run: one
/// Entry instance of each txfunc, first and in the order given, and one Helper
/// instance of each function that is called, here or, of 'Shared', in other
/// files; behind them, of each of 'Callees', which are only called by their
/// addresses, and of what those call. The originals stay as they are.
Sections cloneSections(llvm::ArrayRef<llvm::Function *> Txfuncs,
                       llvm::ArrayRef<llvm::Function *> Shared,
                       llvm::ArrayRef<llvm::Function *> Callees,
                       const SectionOptions &Options);

/// Deletes the instances that turned out unfit, and those that call them: no
/// section ever runs them.
void dropUnfit(Sections &All);

} // namespace holdfast

#endif
