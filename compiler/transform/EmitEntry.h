// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef HOLDFAST_COMPILER_EMITENTRY_H
#define HOLDFAST_COMPILER_EMITENTRY_H

#include "analysis/Arguments.h"
#include "analysis/Names.h"

#include "llvm/IR/GlobalVariable.h"

namespace holdfast {

/// Makes 'Txfunc' open a section around 'Body', and emits its descriptor, which
/// it returns.
llvm::GlobalVariable *emitEntry(llvm::Function &Txfunc, llvm::Function &Body,
                                const ArgumentBlock &Arguments,
                                uint64_t Version,
                                const SectionOptions &Options);

/// Emits the module's constructor that registers 'Descriptors'.
void emitRegistration(llvm::Module &M,
                      llvm::ArrayRef<llvm::GlobalVariable *> Descriptors);

} // namespace holdfast

#endif
