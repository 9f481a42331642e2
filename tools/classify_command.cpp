// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "classify_command.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>

namespace hf::tools {
namespace {

constexpr int cannot_run = 2;
constexpr const char* program = "holdfast-classify";

/// Becomes that program; returns only if there is none.
void become(char** arguments) {
    std::error_code none;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::string beside = (own.parent_path() / program).string();
    ::execv(beside.c_str(), arguments);
    if (errno == ENOENT) ::execvp(program, arguments);
}

} // namespace

void add_classify_command(CLI::App& app, char** arguments) {
    CLI::App* command = app.add_subcommand(
        "classify",
        "which member functions of persistent classes are deferrable, and why others are not");
    command->prefix_command(); // all that follows is the program's
    command->set_help_flag("");
    command->callback([arguments] {
        become(arguments + 1);
        if (errno == ENOENT)
            fmt::print(stderr,
                       "holdfast classify: the program {} is not installed (package "
                       "holdfast-clang)\n",
                       program);
        else fmt::print(stderr, "holdfast classify: {}: {}\n", program, std::strerror(errno));
        throw CLI::RuntimeError(cannot_run);
    });
}

} // namespace hf::tools
