// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is said of a library's function that a section may not call, by its linker
// name: what the program wrote, why not, and what to do instead.
#ifndef HOLDFAST_COMPILER_CALLREASONS_H
#define HOLDFAST_COMPILER_CALLREASONS_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace holdfast {

/// Of functions that take memory that is not the pool's, or give it back; empty
/// for others. Of a language's operator it has the name that a program uses, which
/// says nothing of parameters.
std::string whyVolatileMemory(llvm::StringRef Name);

/// Of functions whose body is not visible.
std::string whyHidden(llvm::StringRef Name);

} // namespace holdfast

#endif
