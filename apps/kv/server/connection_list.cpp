// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "connection_list.hpp"

#include <kv/protocol/protocol.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <sys/un.h>

namespace hf::kv {
namespace {

constexpr std::size_t looked_at_max = 64; // entries for which the lock is held (3)

constexpr std::string_view name_of(client_state is) noexcept {
    switch (is) {
    case client_state::listening: return "conn_listening";
    case client_state::new_command: return "conn_new_cmd";
    case client_state::read: return "conn_read";
    case client_state::parse_command: return "conn_parse_cmd";
    case client_state::read_value: return "conn_nread";
    case client_state::swallow: return "conn_swallow";
    case client_state::write: return "conn_mwrite";
    case client_state::watch: break;
    }
    return "conn_watch";
}

// "tcp:127.0.0.1:11211", "tcp6:[::1]:11211", "unix:/run/kv.sock"; "?:<AF 0>" for an unknown one.
std::string text_of(const sockaddr* address, socklen_t bytes) {
    char host[INET6_ADDRSTRLEN] = {};
    const int family = address->sa_family;
    if (family == AF_INET) {
        const auto* const is = reinterpret_cast<const sockaddr_in*>(address);
        ::inet_ntop(family, &is->sin_addr, host, sizeof host);
        return fmt::format("tcp:{}:{}", host, ntohs(is->sin_port));
    }
    if (family == AF_INET6) {
        const auto* const is = reinterpret_cast<const sockaddr_in6*>(address);
        ::inet_ntop(family, &is->sin6_addr, host, sizeof host);
        return fmt::format("tcp6:[{}]:{}", host, ntohs(is->sin6_port));
    }
    if (family == AF_UNIX) {
        const auto* const is = reinterpret_cast<const sockaddr_un*>(address);
        const std::size_t before = offsetof(sockaddr_un, sun_path);
        const std::size_t room = bytes > before ? bytes - before : 0;
        return fmt::format("unix:{}",
                           std::string_view(is->sun_path, ::strnlen(is->sun_path, room)));
    }
    return fmt::format("?:<AF {}>", family);
}

} // namespace

// The fields of an entry that are read while it cannot go away.
struct connection_list::look {
    int socket;
    client_state state;
    std::uint32_t command_s;
    client_address from;
    sockaddr_storage here;
    socklen_t here_bytes;
};

connection_list::entry::entry(connection_list& in, int socket, client_state is,
                              const client_address& from)
    : in_(&in), socket_(socket), from_(from), state_(is), command_s_(seconds()) {
    const auto number = static_cast<std::size_t>(socket);
    const std::scoped_lock held(in.lock_);
    if (in.entries_.size() <= number) in.entries_.resize(number + 1);
    in.entries_[number] = this;
}

connection_list::entry::~entry() {
    const std::scoped_lock held(in_->lock_);
    in_->entries_[static_cast<std::size_t>(socket_)] = nullptr;
}

std::uint32_t connection_list::seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<std::uint32_t>(now.tv_sec);
}

// Upholds (3). The number to go on from, 0 at the end.
std::size_t connection_list::look_at_some(std::size_t from, std::vector<look>& seen) const {
    const std::scoped_lock held(lock_);
    for (; from < entries_.size() && seen.size() < looked_at_max; ++from) {
        const entry* const it = entries_[from];
        if (it == nullptr) continue;
        look& is = seen.emplace_back();
        is.socket = it->socket_;
        is.state = it->state_.load(std::memory_order_relaxed);
        is.command_s = it->command_s();
        is.from = it->from_;
        is.here_bytes = sizeof is.here;
        is.here.ss_family = AF_UNSPEC;
        (void)::getsockname(it->socket_, reinterpret_cast<sockaddr*>(&is.here), &is.here_bytes);
    }
    return from < entries_.size() ? from : 0;
}

std::size_t connection_list::append_to(byte_buffer& out, std::size_t from,
                                       std::size_t out_bytes_max) const {
    std::vector<look> seen;
    seen.reserve(looked_at_max);
    do {
        seen.clear();
        from = look_at_some(from, seen);
        const std::uint32_t now = seconds();
        for (const look& is : seen) {
            const auto line = [&](std::string_view name, std::string_view value) {
                append_stat(out, fmt::format("{}:{}", is.socket, name), value);
            };
            const std::string here =
                text_of(reinterpret_cast<const sockaddr*>(&is.here), is.here_bytes);
            const bool listens = is.state == client_state::listening;
            line("addr", listens ? here : text_of(&is.from.any, sizeof is.from));
            if (!listens) line("listen_addr", here);
            line("state", name_of(is.state));
            line("secs_since_last_cmd",
                 fmt::to_string(now > is.command_s ? now - is.command_s : 0));
        }
    } while (from != 0 && out.size() < out_bytes_max);
    return from;
}

} // namespace hf::kv
