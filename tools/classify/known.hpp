// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Functions whose bodies are not seen, and what is known of them nevertheless.
#pragma once

#include <clang/AST/Decl.h>

#include <string>

namespace hf::classify {

/// Whether its effect depends on its arguments alone, and it writes only memory that they lead to.
/// For the C library's mathematics this assumes that the next process has the same library.
bool is_allowed(const clang::FunctionDecl& f);

/// The effect of a call of it: "draws a random number (rand)"; for functions without an entry, that
/// their body is not visible.
std::string explain(const clang::FunctionDecl& f);

} // namespace hf::classify
