// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "daemon_start.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace hf::kv {
namespace {

status failed() {
    return {errc::io_error, std::string("cannot go to the background: ") + std::strerror(errno)};
}

[[noreturn]] void wait_for(pid_t child, int told) {
    char word = 0;
    if (::read(told, &word, 1) == 1) ::_exit(0);
    int how = 0;
    (void)::waitpid(child, &how, 0);
    ::_exit(WIFEXITED(how) && WEXITSTATUS(how) != 0 ? WEXITSTATUS(how) : 1);
}

} // namespace

status daemon_start::begin() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return failed();
    const pid_t child = ::fork();
    if (child < 0) return failed();
    if (child > 0) {
        ::close(ends[1]);
        wait_for(child, ends[0]);
    }
    ::close(ends[0]);
    told_ = ends[1];
    ::setsid();
    return {};
}

void daemon_start::serves(bool keep_stderr) {
    if (told_ < 0) return;
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (nowhere >= 0 && !(keep_stderr && fd == STDERR_FILENO)) ::dup2(nowhere, fd);
    if (nowhere >= 0) ::close(nowhere);
    (void)!::write(told_, "", 1);
    ::close(std::exchange(told_, -1));
}

} // namespace hf::kv
