// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "settings.hpp"

#include <string>
#include <vector>

namespace hf::kv {

/// What the command line asks for. When 'exit_code' is not negative there is nothing to serve: help
/// or version was printed, or a complaint.
struct command_line {
    std::string engine; // empty: this program's
    settings chosen;
    int verbosity = 0;
    std::vector<std::string> warnings; // for people, when it serves
    int exit_code = -1;
};
command_line parse_command_line(int argc, char** argv);

} // namespace hf::kv
