// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast top POOL`: a pool watched while a process works on it, a line an interval, or a page of
// metrics for each request. Reads the file; takes no lock and stops nobody. Exit status: 0, or 2:
// wrong usage, or no pool (any more).
#pragma once

#include <cli/command.hpp>

namespace hf::tools {

/// Adds the subcommand.
void add_top_command(const cli::command& app, char** arguments);

} // namespace hf::tools
