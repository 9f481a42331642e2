// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "crash_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <spawn.h>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace hf::tools {
namespace {

constexpr int cannot_run = 2;
constexpr int answer_ms_max = 10'000;

[[noreturn]] void refuse(const std::string& why) {
    fmt::print(stderr, "holdfast crash: {}\n", why);
    throw cli::leave{cannot_run};
}

std::vector<char*> argument_list(std::vector<std::string>& words) {
    std::vector<char*> out;
    for (std::string& w : words) out.push_back(w.data());
    out.push_back(nullptr);
    return out;
}

/// The beginning of a crash program's answer, and of no other program's (check/crash_main.cpp).
constexpr std::string_view answer_begin = "holdfast crash program\n";

/// Whether 'from' ends before the time is over, and began as a crash program's answer does.
bool answers(int from) {
    std::string said;
    char bytes[4096];
    for (pollfd ready{from, POLLIN, 0}; ::poll(&ready, 1, answer_ms_max) > 0;) {
        const ssize_t n = ::read(from, bytes, sizeof bytes);
        if (n <= 0) return said == answer_begin;
        const std::size_t wanted = answer_begin.size() - said.size();
        said.append(bytes, std::min(static_cast<std::size_t>(n), wanted));
        if (!answer_begin.starts_with(said)) return false; // it may go on for ever
    }
    return false;
}

/// Starts `program --list`, its output in 'to', its input and errors nowhere. Returns errno. The
/// environment asks for the answer: a program without that option may print anything.
int start_list(const std::string& program, int to, pid_t& child) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<std::string> words{program, "--list"};
    std::vector<char*> asking;
    for (char** given = environ; *given != nullptr; ++given) asking.push_back(*given);
    std::string asked = "HOLDFAST_CRASH_PROGRAM=1";
    asking.insert(asking.end(), {asked.data(), nullptr});
    const int failed = ::posix_spawnp(&child, program.c_str(), &actions, nullptr,
                                      argument_list(words).data(), asking.data());
    ::posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/// A crash program lists what it has. Any other program is refused before it does anything.
void require_crash_program(const std::string& program) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) refuse(fmt::format("pipe: {}", std::strerror(errno)));
    pid_t child = 0;
    const int failed = start_list(program, ends[1], child);
    ::close(ends[1]);
    if (failed == ENOENT)
        refuse(fmt::format("no program '{}'{}", program,
                           program.find('/') == program.npos
                               ? " in PATH; a file of this folder is named './" + program + "'"
                               : ""));
    if (failed == EACCES) refuse(fmt::format("'{}' is not executable", program));
    if (failed != 0) refuse(fmt::format("'{}': {}", program, std::strerror(failed)));
    const bool said = answers(ends[0]);
    ::close(ends[0]);
    if (!said) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!said || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        refuse(fmt::format("'{}' is not a crash program: it does not answer --list. Build one "
                           "with holdfast_crash_program() (docs/guide/crash-checking.md)",
                           program));
}

struct asked {
    std::string program;
};

void run(const asked& a, const cli::command& command) {
    require_crash_program(a.program);
    std::vector<std::string> words{a.program};
    for (const std::string& w : command.rest()) words.push_back(w);
    ::execvp(a.program.c_str(), argument_list(words).data());
    refuse(fmt::format("'{}': {}", a.program, std::strerror(errno)));
}

} // namespace

void add_crash_command(const cli::command& app, char**) {
    const auto a = std::make_shared<asked>();
    const cli::command command = app.subcommand(
        "crash", "fails a crash program at every event, in every way that memory allows");
    command.value("PROGRAM", a->program, "made by holdfast_crash_program()").required();
    command.takes_rest();
    command.footer("Everything after PROGRAM is for it: 'holdfast crash PROGRAM --help' lists its "
                   "options.");
    command.callback([a, command] { run(*a, command); });
}

} // namespace hf::tools
