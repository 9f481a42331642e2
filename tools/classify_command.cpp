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

/// Becomes that program; returns only if it does not exist.
void become(char** arguments) {
    std::error_code none;
    const auto own = std::filesystem::read_symlink("/proc/self/exe", none);
    const std::string beside = (own.parent_path() / program).string();
    ::execv(beside.c_str(), arguments);
    if (errno == ENOENT) ::execvp(program, arguments);
}

} // namespace

void add_classify_command(const cli::command& app, char** arguments) {
    const cli::command command = app.subcommand(
        "classify",
        "which member functions of persistent classes are deferrable, and why others are not");
    command.takes_rest(); // all that follows is the program's
    command.without_help();
    command.callback([arguments] {
        become(arguments + 1);
        if (errno == ENOENT)
            fmt::print(stderr,
                       "holdfast classify: the program {} is not installed (package "
                       "holdfast-clang)\n",
                       program);
        else fmt::print(stderr, "holdfast classify: {}: {}\n", program, std::strerror(errno));
        throw cli::leave{cannot_run};
    });
}

} // namespace hf::tools
