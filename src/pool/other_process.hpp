// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests of processes beside each other.
#pragma once

#include <csignal>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf::test {

/// A child that does one thing at a time, on request: 'does(order)' returns whether that went well.
class other_process {
public:
    template <class Does> explicit other_process(Does&& does) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
        process_ = ::fork();
        end_ = ends[process_ == 0 ? 1 : 0];
        ::close(ends[process_ == 0 ? 0 : 1]);
        if (process_ != 0) return;
        for (char order = 0; ::read(end_, &order, 1) == 1;) {
            const char said = does(order) ? 1 : 0;
            if (::write(end_, &said, 1) != 1) break;
        }
        ::_exit(0);
    }
    ~other_process() { end(); }
    other_process(const other_process&) = delete;
    other_process& operator=(const other_process&) = delete;
    /// False, too, when it has died.
    bool do_it(char order) {
        char said = 0;
        return ::write(end_, &order, 1) == 1 && ::read(end_, &said, 1) == 1 && said == 1;
    }
    void kill() {
        ::kill(process_, SIGKILL);
        end();
    }

private:
    void end() {
        if (process_ == 0) return;
        ::close(end_);
        ::waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    pid_t process_ = 0;
    int end_ = -1;
};

} // namespace hf::test
