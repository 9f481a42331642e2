// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast print POOL [EXPRESSION]`: the root object in the words of its program. gdb prints: it
// has the types from the program's debug information, the bytes from the pool's file.
#pragma once

#include <cli/command.hpp>

namespace hf::tools {

/// Adds the subcommand.
void add_print_command(const cli::command& app, char** arguments);

} // namespace hf::tools
