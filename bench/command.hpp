// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast bench …`.
#pragma once

namespace CLI {
class App;
}

namespace hf::bench {

/// Adds the subcommand. 'arguments': the program's own, to start again with another environment.
void add_command(CLI::App& app, char** arguments);

} // namespace hf::bench
