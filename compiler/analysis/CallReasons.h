// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions by their linker names: which vary, and messages about those that
// a section may not call. A message says what the program wrote, why not, and what
// to do instead.
#ifndef HOLDFAST_COMPILER_CALLREASONS_H
#define HOLDFAST_COMPILER_CALLREASONS_H

#include "analysis/Engines.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/Intrinsics.h"
#include <string>

namespace holdfast {

/// Returns why a section may not call 'Name' when that function takes or gives
/// back memory outside of the pool; empty for other functions. A language's
/// operator appears under the name that programs use, without parameters.
std::string whyVolatileMemory(llvm::StringRef Name);

/// Whether the function's result is another at the next call: a clock, a source of
/// random numbers.
bool varies(llvm::StringRef Name);

/// Returns why a section may not ask where this process happens to have its stack,
/// nor for or set modes of its thread; empty for other intrinsics.
std::string whyMachineState(llvm::Intrinsic::ID Id);

/// Returns why a section may not call a function whose body is not visible.
std::string whyHidden(const llvm::Function &F);

/// Returns why a section of an engine that does not 'callsElsewhere' may not call
/// a function of another file, although that has a version for sections.
std::string whyElsewhere(const llvm::Function &F, const EngineInfo &Engine);

} // namespace holdfast

#endif
