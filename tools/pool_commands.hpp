// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast info | check | verify | dump | repair POOL`: looking into a pool's file, and mending
// it. Lines for people, one JSON object with --json. Exit status: 0 good, 1 damaged, 2 wrong usage
// or no pool, 3 not verifiable (left open, sections pending, or unsealed and --deep asked for).
#pragma once

#include <cli/command.hpp>

namespace hf::tools {

/// Adds the subcommands.
void add_pool_commands(const cli::command& app, char** arguments);

} // namespace hf::tools
