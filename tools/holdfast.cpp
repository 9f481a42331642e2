// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The holdfast command: a table of subcommands, each added by the library that implements it.
#include <CLI/CLI.hpp>
#include <bench/command.hpp>

namespace {

using add_command = void (*)(CLI::App& app, char** arguments);

constexpr add_command commands[] = {
    hf::bench::add_command,
};

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"Failure-atomic persistent memory: pools, checks, measurements", "holdfast"};
    app.require_subcommand(1);
    for (const add_command add : commands) add(app, argv);
    CLI11_PARSE(app, argc, argv);
}
