// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cli/command.hpp>

namespace hf::tools {

/// holdfast classify: hands its arguments to the program holdfast-classify, which lies beside the
/// command or in PATH. The command itself has nothing of clang in it.
void add_classify_command(const cli::command& app, char** arguments);

} // namespace hf::tools
