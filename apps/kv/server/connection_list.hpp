// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All connections, for `stats conns`: sockets that listen, the clients of all threads, and clients
// that watch.
//
// (1) An entry is in the list only while its socket is open: the owner of both removes the entry
//     first. So an entry with a number is never another client's.
// (2) The thread that serves a client writes what its entry says, and any thread reads it: words of
//     their own, each old or new.
// (3) A look holds the lock for some entries at a time: connections that come or go do not wait for
//     the end of a long list.
#pragma once

#include <kv/protocol/byte_buffer.hpp>

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <sys/socket.h>
#include <vector>

namespace hf::kv {

/// A client's present activity, in memcached's order and words.
enum class client_state : std::uint8_t {
    listening,
    new_command,   // it has said nothing yet
    read,          // it says nothing, or has begun a line
    parse_command, // it is served
    read_value,
    swallow, // a refused value is on its way
    write,   // it has yet to take its answer
    watch,
};

/// A client's address. Memcached reports none for a Unix socket's client: all zero.
union client_address {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
};

class connection_list {
public:
    class entry {
    public:
        entry(connection_list& in, int socket, client_state is, const client_address& from = {});
        entry(const entry&) = delete;
        entry& operator=(const entry&) = delete;
        ~entry();

        void now(client_state is) noexcept { state_.store(is, std::memory_order_relaxed); }
        /// When its last command began, or it did; in seconds since the machine did.
        std::uint32_t command_s() const noexcept {
            return command_s_.load(std::memory_order_relaxed);
        }
        void command_at(std::uint32_t second) noexcept {
            command_s_.store(second, std::memory_order_relaxed);
        }

    private:
        friend class connection_list;
        connection_list* in_;
        int socket_;
        client_address from_;
        std::atomic<client_state> state_; // (2)
        std::atomic<std::uint32_t> command_s_;
    };

    connection_list() = default;
    connection_list(const connection_list&) = delete;
    connection_list& operator=(const connection_list&) = delete;

    /// The clock of command_s().
    static std::uint32_t seconds() noexcept;
    /// Appends the lines of the sockets from number 'from' on, until 'out' has 'out_bytes_max'
    /// bytes or some more. Returns the number to go on from, 0 at the end.
    std::size_t append_to(byte_buffer& out, std::size_t from, std::size_t out_bytes_max) const;

private:
    struct look;
    std::size_t look_at_some(std::size_t from, std::vector<look>& seen) const;

    mutable std::mutex lock_;     // guards what follows, and that the sockets in it stay open
    std::vector<entry*> entries_; // by the socket's number
};

} // namespace hf::kv
