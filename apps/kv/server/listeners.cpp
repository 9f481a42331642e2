// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "server.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace hf::kv {
namespace {

status failed(const std::string& doing) {
    const errc code = errno == EADDRINUSE ? errc::in_use
                      : errno == EACCES   ? errc::permission
                                          : errc::io_error;
    return {code, doing + ": " + std::strerror(errno)};
}

std::string name_of(int socket) {
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "?";
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), bytes, host, sizeof host, port,
                      sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return "?";
    return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port)
                                         : fmt::format("{}:{}", host, port);
}

int port_of(int socket) {
    sockaddr_storage address{};
    socklen_t bytes = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
    return ntohs(address.ss_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                     : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

// Splits "host", "host:port", "[v6]:port"; an address with several colons is v6 alone.
void split_port(std::string& host, int& port) {
    const auto colon = host.rfind(':');
    const bool bracketed = host.starts_with('[');
    if (colon != std::string::npos &&
        (bracketed ? host[colon - 1] == ']' : host.find(':') == colon)) {
        port = std::atoi(host.c_str() + colon + 1);
        host.resize(colon);
    }
    if (bracketed && host.size() >= 2) host = host.substr(1, host.size() - 2);
}

} // namespace

listeners::~listeners() { close(); }

void listeners::close() {
    for (const socket& each : sockets_) ::close(each.descriptor);
    sockets_.clear();
    if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
    unix_path_.clear();
}

status listeners::bind_one(const std::string& host, int port, bool secured) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const std::string service = std::to_string(port < 0 ? 0 : port);
    const int error =
        ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &wanted, &found);
    const std::string named =
        fmt::format("cannot listen on {}:{}", host.empty() ? "*" : host, port);
    if (error != 0) return {errc::bad_argument, named + ": " + ::gai_strerror(error)};
    status last(errc::io_error, named);
    bool any = false;
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
        const int socket = ::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (socket < 0) continue; // the system lacks this protocol
        const int on = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (at->ai_family == AF_INET6)
            ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        // If the system chooses the port, every address family gets the same number.
        if (port < 0 && any) {
            const int chosen =
                htons(static_cast<std::uint16_t>(port_of(sockets_.back().descriptor)));
            if (at->ai_family == AF_INET6)
                reinterpret_cast<sockaddr_in6*>(at->ai_addr)->sin6_port =
                    static_cast<in_port_t>(chosen);
            else
                reinterpret_cast<sockaddr_in*>(at->ai_addr)->sin_port =
                    static_cast<in_port_t>(chosen);
        }
        if (::bind(socket, at->ai_addr, at->ai_addrlen) == 0) {
            sockets_.push_back({socket, secured});
            any = true;
            continue;
        }
        const int why = errno;
        ::close(socket);
        if (why == EADDRNOTAVAIL && host.empty()) continue; // the family is switched off
        errno = why;
        last = failed(named);
        any = false;
        break;
    }
    ::freeaddrinfo(found);
    return any ? status() : last;
}

status listeners::bind_tcp(const settings& chosen) {
    std::string_view rest = chosen.addresses;
    do {
        const auto comma = rest.find(',');
        std::string host(rest.substr(0, comma));
        rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
        int port = chosen.tcp_port;
        bool secured = chosen.secured.enabled;
        if (constexpr std::string_view plain = "notls:"; host.starts_with(plain)) {
            if (!secured)
                return {errc::bad_argument,
                        fmt::format("cannot listen on {}: notls without TLS (-Z)", host)};
            host.erase(0, plain.size());
            secured = false;
        }
        split_port(host, port);
        if (status bound = bind_one(host, port, secured); !bound.ok()) return bound;
    } while (!rest.empty());
    return {};
}

status listeners::bind_unix(const settings& chosen) {
    const std::string named = "cannot listen on " + chosen.unix_path;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (chosen.unix_path.size() >= sizeof address.sun_path)
        return {errc::bad_argument, named + ": the path is too long"};
    std::memcpy(address.sun_path, chosen.unix_path.data(), chosen.unix_path.size());
    // Removes what an earlier server left behind; anything but a socket stays.
    struct stat left{};
    if (::lstat(chosen.unix_path.c_str(), &left) == 0 && S_ISSOCK(left.st_mode))
        ::unlink(chosen.unix_path.c_str());
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) return failed(named);
    const mode_t before = ::umask(static_cast<mode_t>(~chosen.unix_mask & 0777));
    const int bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
    const int why = errno;
    ::umask(before);
    if (bound != 0) {
        ::close(socket);
        errno = why;
        return failed(named);
    }
    sockets_.push_back({socket, false});
    unix_path_ = chosen.unix_path;
    return {};
}

status listeners::listen(std::uint32_t backlog) {
    for (const socket& each : sockets_)
        if (::listen(each.descriptor, static_cast<int>(backlog)) != 0)
            return failed("cannot listen on " + where());
    return {};
}

status listeners::write_ports(const std::string& path) const {
    std::string lines;
    for (const socket& each : sockets_) {
        sockaddr_storage address{};
        socklen_t bytes = sizeof address;
        if (::getsockname(each.descriptor, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
            continue;
        if (address.ss_family == AF_UNIX) continue;
        lines += fmt::format("TCP INET{}: {}\n", address.ss_family == AF_INET6 ? "6" : "",
                             port_of(each.descriptor));
    }
    // A reader that waits for the file finds all of it.
    const std::string unfinished = path + ".lck";
    std::FILE* const file = std::fopen(unfinished.c_str(), "w");
    if (file == nullptr) return failed("cannot write " + unfinished);
    const bool written = std::fwrite(lines.data(), 1, lines.size(), file) == lines.size();
    if (std::fclose(file) != 0 || !written || std::rename(unfinished.c_str(), path.c_str()) != 0)
        return failed("cannot write " + path);
    return {};
}

std::string listeners::where() const {
    if (!unix_path_.empty()) return unix_path_;
    std::string names;
    for (const socket& each : sockets_)
        names += (names.empty() ? "" : ", ") + name_of(each.descriptor);
    return names;
}

} // namespace hf::kv
