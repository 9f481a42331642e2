// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sockets, threads, signals. One thread accepts; workers, each with an event loop of its own, serve
// the connections given to them in turn.
//
// (1) No request is executed before every listening socket is bound and the pool is open.
// (2) A connection belongs to one worker for its life; workers share only the store and counters.
#pragma once

#include "service.hpp"

#include <holdfast/result.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hf::kv {

class tls;
class worker;

/// The sockets that clients connect to.
class listeners {
public:
    listeners() = default;
    listeners(const listeners&) = delete;
    listeners& operator=(const listeners&) = delete;
    ~listeners();

    /// Takes the TCP addresses without accepting yet: a busy port is known before a pool is opened.
    status bind_tcp(const settings& chosen);
    /// Takes the Unix socket. Called with the pool open: its lock shows that no other server of
    /// this pool uses the path.
    status bind_unix(const settings& chosen);
    status listen(std::uint32_t backlog);
    /// Stops listening and removes the Unix socket: while the pool is still locked, so that it is
    /// never the socket of the next server.
    void close();

    struct socket {
        int descriptor;
        bool secured; // its clients speak TLS
    };
    const std::vector<socket>& sockets() const noexcept { return sockets_; }
    /// Writes the ports as memcached does for MEMCACHED_PORT_FILENAME, a line each.
    status write_ports(const std::string& path) const;
    /// "127.0.0.1:11211, [::]:11211" for people.
    std::string where() const;
    bool tcp() const noexcept { return unix_path_.empty(); }

private:
    status bind_one(const std::string& host, int port, bool secured);
    std::vector<socket> sockets_;
    std::string unix_path_;
};

/// Keeps SIGTERM and SIGINT from ending the process before there is something to end cleanly.
void block_stop_signals();

/// Serves until SIGTERM, SIGINT or SIGUSR1; returns when all connections are closed and all threads
/// joined. 'ready' is called once nothing can fail any more that it would have to take back.
///
/// Requires: block_stop_signals() was called, so that an early signal waits for its handler;
///           'secured' is loaded where a socket's clients speak TLS.
/// Errors:   io_error: a thread cannot be started; nobody was served.
status serve(service& serving, const listeners& from, tls& secured,
             const std::function<void()>& ready);

} // namespace hf::kv
