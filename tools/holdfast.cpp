// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The holdfast command: a table of subcommands, each added by the library that implements it.
#include "crash_command.hpp"
#include "pool_commands.hpp"

#include <CLI/CLI.hpp>
#include <bench/command.hpp>

namespace {

using add_command = void (*)(CLI::App& app, char** arguments);

constexpr add_command commands[] = {
    hf::bench::add_command,
    hf::tools::add_crash_command,
    hf::tools::add_pool_commands,
};

} // namespace

int main(int argc, char** argv) {
    CLI::App app{"Failure-atomic persistent memory: pools, checks, measurements", "holdfast"};
    app.require_subcommand(1);
    for (const add_command add : commands) add(app, argv);
    try {
        app.parse(argc, argv);
    } catch (const CLI::RuntimeError& ended) {
        return ended.get_exit_code(); // what a subcommand has to say
    } catch (const CLI::ParseError& wrong) {
        return app.exit(wrong) == 0 ? 0 : 2; // 0: --help
    }
}
