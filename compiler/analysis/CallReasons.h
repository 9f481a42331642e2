// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions by their linker names: which vary, and messages about those that
// a section may not call. A message says what the program wrote, why not, and what
// to do instead.
#ifndef HOLDFAST_COMPILER_CALLREASONS_H
#define HOLDFAST_COMPILER_CALLREASONS_H

#include "analysis/Engines.h"

#include "llvm/IR/Function.h"
#include "llvm/IR/IntrinsicInst.h"
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
/// -finstrument-functions: called at the start and the end of each function, with
/// addresses of code. What they do is no part of the section.
bool isFunctionHook(llvm::StringRef Name);
/// Whether it makes an address for such calls alone.
bool isForHooks(const llvm::IntrinsicInst &Call);

/// The string stream that a function of this name is a member of, such as
/// "std::ostringstream"; empty: none.
llvm::StringRef stringStreamOf(llvm::StringRef Name);
/// Whether it is a function of streams, or of what they are made of.
bool isOfStreams(llvm::StringRef Name);
std::string whyStringStream(llvm::StringRef Class);

std::string whyHidden(const llvm::Function &F);

/// Returns why a section of an engine that does not 'callsElsewhere' may not call
/// a function of another file, although that has a version for sections.
std::string whyElsewhere(const llvm::Function &F, const EngineInfo &Engine);

} // namespace holdfast

#endif
