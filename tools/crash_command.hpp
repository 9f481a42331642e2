// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast crash PROGRAM [args]`: the crash checker on a user's own program, an executable that
// holdfast_crash_program() made. Exit status: the program's (0 no violation, 1 violation, 2 wrong
// usage, 3 not everything explored), or 2 when PROGRAM cannot be one.
#pragma once

#include <cli/command.hpp>

namespace hf::tools {

/// Adds the subcommand.
void add_crash_command(const cli::command& app, char** arguments);

} // namespace hf::tools
