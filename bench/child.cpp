// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "child.hpp"

#include "temporary_file.hpp"

#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::bench {
namespace {

void set_all(const environment& wanted) {
    for (const auto& [name, value] : wanted) setenv(name.c_str(), value.c_str(), 1);
}

} // namespace

std::string output_of_self(const std::vector<std::string>& arguments, const environment& added) {
    int ends[2];
    if (pipe(ends) != 0) give_up("pipe failed");
    const pid_t child = fork();
    if (child < 0) give_up("fork failed");
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        set_all(added);
        std::vector<char*> list;
        std::string self = "holdfast";
        list.push_back(self.data());
        std::vector<std::string> copies = arguments;
        for (std::string& one : copies) list.push_back(one.data());
        list.push_back(nullptr);
        execv("/proc/self/exe", list.data());
        _exit(127);
    }
    close(ends[1]);
    std::string output;
    char block[4096];
    for (ssize_t count; (count = read(ends[0], block, sizeof block)) > 0;)
        output.append(block, static_cast<std::size_t>(count));
    close(ends[0]);
    int state = 0;
    waitpid(child, &state, 0);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        std::string line;
        for (const std::string& one : arguments) line += " " + one;
        give_up("failed:" + line);
    }
    return output;
}

void become_with(const environment& wanted, char** arguments) {
    bool missing = false;
    for (const auto& [name, value] : wanted) {
        const char* now = std::getenv(name.c_str());
        missing = missing || now == nullptr || value != now;
    }
    if (!missing) return;
    set_all(wanted);
    execv("/proc/self/exe", arguments);
    give_up("cannot start again");
}

} // namespace hf::bench
