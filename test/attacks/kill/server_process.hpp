// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// holdfast-kv as a child process on a Unix socket, and a client that speaks just enough memcached
// text protocol to know what was acknowledged.
#pragma once

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace kill_test {

class server_process {
public:
    server_process(const std::vector<std::string>& command) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) std::perror("pipe"), std::exit(2);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::dup2(ends[1], STDOUT_FILENO);
            ::dup2(ends[1], STDERR_FILENO);
            std::vector<char*> arguments;
            for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
            arguments.push_back(nullptr);
            ::execv(arguments[0], arguments.data());
            ::_exit(127);
        }
        ::close(ends[1]);
        said_ = ends[0];
    }
    ~server_process() {
        if (pid_ > 0) kill();
        ::close(said_);
    }
    server_process(const server_process&) = delete;
    server_process& operator=(const server_process&) = delete;

    /// True when it has said that it listens; false when it ended, or said nothing for a minute.
    bool wait_until_ready() {
        while (said_so_far_.find("listening on") == std::string::npos)
            if (!listen_to_it()) return false;
        return true;
    }
    /// All that it has said, to either stream. Requires: it has ended.
    const std::string& said() {
        while (listen_to_it()) {}
        return said_so_far_;
    }
    /// SIGKILL; false when the server had ended before by anything else.
    bool kill() {
        ::kill(pid_, SIGKILL);
        return wait() && WIFSIGNALED(how_) && WTERMSIG(how_) == SIGKILL;
    }

private:
    bool wait() {
        while (::waitpid(pid_, &how_, 0) < 0)
            if (errno != EINTR) return false;
        pid_ = -1;
        return true;
    }
    bool listen_to_it() {
        pollfd wait{said_, POLLIN, 0};
        char text[512];
        if (::poll(&wait, 1, 60000) != 1) return false;
        const ssize_t n = ::read(said_, text, sizeof text);
        if (n > 0) said_so_far_.append(text, static_cast<std::size_t>(n));
        return n > 0;
    }
    pid_t pid_ = -1;
    int said_ = -1, how_ = 0;
    std::string said_so_far_;
};

class text_client {
public:
    explicit text_client(const std::string& path) {
        fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        std::strncpy(where.sun_path, path.c_str(), sizeof where.sun_path - 1);
        connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
    }
    ~text_client() { ::close(fd_); }
    text_client(const text_client&) = delete;
    text_client& operator=(const text_client&) = delete;

    bool connected() const { return connected_; }
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
        return true;
    }
    /// The next line without its end; false when the server is gone.
    bool line(std::string& out) {
        std::size_t end;
        while ((end = buffer_.find("\r\n")) == std::string::npos)
            if (!receive()) return false;
        out = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return true;
    }
    bool exactly(std::size_t count, std::string& out) {
        while (buffer_.size() < count)
            if (!receive()) return false;
        out = buffer_.substr(0, count);
        buffer_.erase(0, count);
        return true;
    }
    /// get; false when the server is gone.
    bool get(const std::string& key, bool& there, std::string& value) {
        std::string answer;
        if (!send("get " + key + "\r\n") || !line(answer)) return false;
        there = answer.starts_with("VALUE ");
        if (!there) return true;
        const std::size_t bytes = std::strtoull(answer.c_str() + answer.rfind(' '), nullptr, 10);
        return exactly(bytes, value) && exactly(2, answer) && line(answer);
    }

private:
    bool receive() {
        char bytes[65536];
        const ssize_t n = ::recv(fd_, bytes, sizeof bytes, 0);
        if (n <= 0) return false;
        buffer_.append(bytes, static_cast<std::size_t>(n));
        return true;
    }
    int fd_;
    bool connected_;
    std::string buffer_;
};

} // namespace kill_test
