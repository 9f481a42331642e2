// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indirect and virtual calls of sections that are never re-executed: the runtime
// finds the instance of what their address leads to.
#ifndef HOLDFAST_COMPILER_DISPATCHCALLS_H
#define HOLDFAST_COMPILER_DISPATCHCALLS_H

#include "analysis/Sections.h"

namespace holdfast {

/// Returns the functions of the module that an indirect call may reach, in this
/// module or another.
llvm::SmallVector<llvm::Function *, 8> findCallees(llvm::Module &M);

/// Makes every indirect call of an instance one of the instance that the runtime
/// finds.
void dispatchCalls(const Sections &All);

/// Returns the place in the source of a call in a section, for messages.
std::string placeOf(const SectionFunction &F, const llvm::CallBase &Call);

/// Emits the module's table of 'Callees', and the constructor that gives it to
/// the runtime.
void emitCallees(llvm::Module &M, llvm::ArrayRef<Callee> Callees,
                 const EngineInfo &Engine);

} // namespace holdfast

#endif
