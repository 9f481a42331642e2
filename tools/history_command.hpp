// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast history POOL OBJECT`: the calls of a persistent object that were kept, one a line; one
// JSON object with --json. Exit status: 0 good, 1 the history is damaged or of another state, 2
// wrong usage, no pool, no object or no history.
#pragma once

#include <cli/command.hpp>

namespace hf::tools {

/// Adds the subcommand.
void add_history_command(const cli::command& app, char** arguments);

} // namespace hf::tools
