// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a client and the process that serves its pool share: a memory of their own, and a socket.
//
//   client   requests: ring[turn % ring_requests], turn = 1, 2, …      ──>   server
//   client   <──   answer of the last request that has one; 'taken', the requests copied so far
//
// (1) A request counts when its turn is stored, behind all its other words. The client uses a place
//     again when 'taken', or a later request's answer, says that the server has a copy.
// (2) The server keeps its cursors to itself. It copies a request once, and judges the copy. It
//     reads nothing else, and nothing that it reads is an address or an index without bounds.
// (3) The memory is sealed: nobody can shorten it under the other.
// (4) One that is about to sleep says so in its word, looks once more, and then waits for a byte on
//     the socket. The other stores, then looks at that word, and sends the byte. The end of a
//     process ends its socket, which wakes the other, too.
#pragma once

#include <base/line.hpp>
#include <pool/forks.hpp>
#include <simpo/format.hpp>

#include <holdfast/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utility>

namespace hf::simpo {

namespace detail {
class connection;
}

inline constexpr std::uint64_t ring_requests = 64;

enum class request_kind : std::uint8_t { attach = 1, last = 2, defer = 3, call = 4 };

/// A request without its turn, as the server copies it.
struct request {
    std::uint64_t number;   // of the call
    std::uint64_t function; // identifier
    std::uint32_t schema;
    std::uint16_t version;
    std::uint8_t words;   // of arguments
    std::uint8_t kind;    // request_kind
    std::uint64_t handle; // that attach answered
    std::uint64_t arguments[record_words_max - 2];
};
/// Words of its head, behind which its arguments are.
inline constexpr std::size_t request_head_bytes = offsetof(request, arguments);

/// The arguments of request_kind::attach. It answers the handle.
struct attachment {
    std::uint64_t caller, class_version, object_bytes;
    char object[text_bytes_max + 1], class_text[text_bytes_max + 1]; // zero-padded
};
static_assert(sizeof(attachment) <= sizeof(request::arguments));

/// A request's line; arguments that it has no room for are in segment::more.
struct alignas(line_bytes) request_line {
    static constexpr std::size_t arguments_max = 2;
    std::atomic<std::uint64_t> turn;
    std::byte head[request_head_bytes];
    std::uint64_t arguments[arguments_max];
};
static_assert(sizeof(request_line) == line_bytes);

struct alignas(line_bytes) answer {
    std::atomic<std::uint64_t> turn; // of its request; stored last
    std::uint32_t code;              // errc
    std::uint32_t words;             // of the result
    std::uint64_t result[result_words_max];
    char text[512]; // of an error
};

struct segment {
    request_line ring[ring_requests];
    alignas(line_bytes) std::uint64_t more[ring_requests][record_words_max];
    answer said;
    alignas(line_bytes) std::atomic<std::uint64_t> taken;
    alignas(line_bytes) std::atomic<std::uint32_t> server_sleeps;
    alignas(line_bytes) std::atomic<std::uint32_t> client_sleeps;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Which file this is, while a process has it open.
struct file_place {
    std::uint64_t device, inode;
    static file_place of(const struct stat& about) noexcept { return {about.st_dev, about.st_ino}; }
    bool operator==(const file_place&) const = default;
};

/// What the server sends first, with the memory's descriptor unless 'code' is an error's.
struct greeting {
    static constexpr std::uint64_t this_protocol = 0x3276524853464850ULL; // "PHFSHRv2" in memory
    std::uint64_t protocol, segment_bytes, code;
    file_place pool; // the file that it serves: another one may have the name by now
};

/// The name of the pool's socket, as the system takes it. Keeps the pool's directory open: the
/// directory may have a longer name than an address has room for. A link leads to the socket beside
/// the file that it leads to.
class socket_name {
public:
    /// Errors: not_found (the directory), bad_argument (the file's name is too long), io_error.
    static result<socket_name> of(const std::string& pool_path);
    socket_name(socket_name&& other) noexcept
        : address_(other.address_), directory_(std::exchange(other.directory_, -1)) {}
    socket_name& operator=(socket_name&&) = delete;
    ~socket_name();

    const sockaddr* address() const noexcept {
        return reinterpret_cast<const sockaddr*>(&address_);
    }
    static constexpr socklen_t address_bytes = sizeof(sockaddr_un);
    const char* path() const noexcept { return address_.sun_path; }
    /// permission, if the socket there is another user's; else ok.
    status of_another_user(const std::string& pool_path) const;

private:
    socket_name() = default;
    sockaddr_un address_{};
    int directory_ = -1;
};

/// A socket that a child of fork() has not: the other end would not learn that this process has
/// ended. Moves.
class own_socket {
public:
    /// Takes what 'make' returns: a descriptor, or less than 0. Throws std::bad_alloc.
    template <class Make> static own_socket of(Make&& make) {
        own_socket made;
        const table held;
        made.fd_ = make();
        if (made.fd_ >= 0) table::add(made.fd_);
        return made;
    }
    own_socket(own_socket&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), forked_(other.forked_) {}
    own_socket& operator=(own_socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(forked_, other.forked_);
        return *this;
    }
    ~own_socket();

    int get() const noexcept { return fd_; }
    /// Whether a parent of this process has it, and not this process.
    bool is_parents() const noexcept { return forked_ != forks::count(); }

private:
    struct table { // held across fork()
        table();
        ~table();
        table(const table&) = delete;
        static void add(int fd);
    };
    own_socket() = default;
    int fd_ = -1;
    unsigned forked_ = forks::count();
};

/// Whether the process at the other end is of this user.
bool is_ours(int socket) noexcept;
/// Wakes the one that sleeps, if it does. Called behind the store that it waits for, and a fence.
void wake(std::atomic<std::uint32_t>& sleeps, int socket) noexcept;
/// Takes the bytes that have woken this one. False: the other end is gone.
bool take_bytes(int socket) noexcept;

/// For tests: what a connection shares with its server; and a byte that wakes the server.
segment& shared_of(detail::connection& over) noexcept;
void wake_server(detail::connection& over) noexcept;

/// Calls is_there() until it is true, for some microseconds. False: time to sleep.
template <class IsThere> bool spin_for(IsThere&& is_there) {
    constexpr int looks = 4000, yields = 20; // longer than an answer takes: 0.5 us
    for (int i = 0; i < looks; ++i)
        if (is_there()) return true;
    for (int i = 0; i < yields; ++i) {
        ::sched_yield(); // the other may wait for this processor
        if (is_there()) return true;
    }
    return false;
}

} // namespace hf::simpo
