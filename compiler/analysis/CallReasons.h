// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Library functions by their linker names: which vary, and messages about those that
// a section may not call. A message says what the program wrote, why not, and what
// to do instead.
#ifndef HOLDFAST_COMPILER_CALLREASONS_H
#define HOLDFAST_COMPILER_CALLREASONS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace holdfast {

/// Returns why a section may not call 'Name' when that function takes or gives
/// back memory outside of the pool; empty for other functions. A language's
/// operator appears under the name that programs use, without parameters.
std::string whyVolatileMemory(llvm::StringRef Name);

/// Whether the function's result is another at the next call: a clock, a source of
/// random numbers.
bool varies(llvm::StringRef Name);

/// Returns why a section may not call 'Name', whose body is not visible.
std::string whyHidden(llvm::StringRef Name);

} // namespace holdfast

#endif
