// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "settings.hpp"

#include <string>
#include <vector>

namespace hf::kv {

/// The result of the command line. If 'exit_code' is not negative, the server does not start: help
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
