// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <CLI/CLI.hpp>

namespace hf::tools {

/// holdfast classify: hands its arguments to the program holdfast-classify, which lies beside the command or in PATH.
/// The command itself has nothing of clang in it.
void add_classify_command(CLI::App& app, char** arguments);

} // namespace hf::tools
