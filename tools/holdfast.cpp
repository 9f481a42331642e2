// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The holdfast command: a table of subcommands, each added by the library that implements it.
#include "classify_command.hpp"
#include "crash_command.hpp"
#include "history_command.hpp"
#include "pool_commands.hpp"
#include "print_command.hpp"
#include "top_command.hpp"
#include <cli/command.hpp>

#ifdef HF_WITH_BENCHMARKS
#include <bench/command.hpp>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace cli = hf::cli;
using add_command = void (*)(const cli::command& app, char** arguments);

constexpr add_command commands[] = {
#ifdef HF_WITH_BENCHMARKS
    [](const cli::command& app, char** arguments) {
        hf::bench::add_command(app.cli11(), arguments);
    },
#endif
    hf::tools::add_classify_command,
    hf::tools::add_crash_command,
    hf::tools::add_history_command,
    hf::tools::add_pool_commands,
    hf::tools::add_print_command,
    hf::tools::add_top_command,
};

/// The number of letters to add, leave out or change until one word is the other.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t corner = row[0]++;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t changed = corner + (a[i] != b[j] ? 1 : 0);
            corner = row[j + 1];
            row[j + 1] = std::min({changed, row[j + 1] + 1, row[j] + 1});
        }
    }
    return row.back();
}

/// Reports an unknown subcommand, or that none was given. CLI11 reports neither.
int refuse_subcommand(const cli::program& app, const char* found) {
    std::string names, nearest;
    std::size_t least = 3; // further away is no misspelling
    for (const std::string& name : app.subcommands()) {
        names += (names.empty() ? "" : ", ") + name;
        if (found == nullptr || distance(found, name) >= least) continue;
        least = distance(found, name);
        nearest = name;
    }
    if (found == nullptr)
        std::fprintf(stderr, "holdfast: a subcommand is missing: %s", names.c_str());
    else if (nearest.empty())
        std::fprintf(stderr, "holdfast: no subcommand '%s'; there are: %s", found, names.c_str());
    else
        std::fprintf(stderr, "holdfast: no subcommand '%s': did you mean '%s'?", found,
                     nearest.c_str());
    std::fprintf(stderr, " (holdfast --help)\n");
    return 2;
}

/// An answer that was not written whole is a failure, whatever it said.
int ended(int status) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    std::fprintf(stderr, "holdfast: the output could not be written: %s\n", std::strerror(errno));
    return status == 0 ? 2 : status;
}

} // namespace

int main(int argc, char** argv) {
    const cli::program app{"Failure-atomic persistent memory: pools, checks, measurements",
                           "holdfast"};
    app.wants_subcommand();
    app.version("--version", "holdfast " HF_VERSION);
    for (const add_command add : commands) add(app, argv);
    const char* const first = argc > 1 ? argv[1] : nullptr;
    const auto there = app.subcommands();
    const bool option = first != nullptr && first[0] == '-';
    if (option && !app.has_option(first)) {
        std::fprintf(stderr, "holdfast: no option '%s' (holdfast --help)\n", first);
        return 2;
    }
    if (!option && (first == nullptr || std::ranges::find(there, first) == there.end()))
        return refuse_subcommand(app, first);
    return ended(app.read_or_say(argc, argv).value_or(0));
}
