// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metrics_server.hpp"

#include "contents_text.hpp"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace hf::tools {
namespace {

struct place {
    std::string host;
    std::uint16_t port;
};

std::optional<place> place_of(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon == 0) return std::nullopt;
    place out{address.substr(0, colon), 0};
    const char* const end = address.data() + address.size();
    const auto [at, ok] = std::from_chars(address.data() + colon + 1, end, out.port);
    if (ok != std::errc() || at != end) return std::nullopt;
    const bool six = out.host.front() == '[' && out.host.back() == ']';
    if (six) out.host = out.host.substr(1, out.host.size() - 2);
    in6_addr room{};
    if (::inet_pton(six ? AF_INET6 : AF_INET, out.host.c_str(), &room) != 1) return std::nullopt;
    return out;
}

std::uint16_t port_of(evutil_socket_t socket) {
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return 0;
    return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(own).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(own).sin_port);
}

// What follows is called by C: nothing may be thrown through it.

void answer(evhttp_request* asked, void* page) noexcept {
    try {
        const std::string text = (*static_cast<const std::function<std::string()>*>(page))();
        evkeyvalq* const headers = evhttp_request_get_output_headers(asked);
        evhttp_add_header(headers, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
        evbuffer_add(evhttp_request_get_output_buffer(asked), text.data(), text.size());
        evhttp_send_reply(asked, HTTP_OK, "OK", nullptr);
    } catch (...) { // no memory
        evhttp_send_error(asked, HTTP_INTERNAL, nullptr);
    }
}

/// Connections take descriptors below this one: the others are for looks at the file.
int connections_end() noexcept {
    constexpr rlim_t most = 256;
    rlimit here{};
    return ::getrlimit(RLIMIT_NOFILE, &here) != 0
               ? static_cast<int>(most)
               : static_cast<int>(std::min(most, here.rlim_cur / 2));
}

/// An open gets the lowest descriptor that is free: so many are in use at least.
bool has_room() noexcept {
    const int next = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (next < 0) return false;
    ::close(next);
    return next < connections_end();
}

void accept_later(evconnlistener* from) noexcept;

void accept_again(evutil_socket_t, short, void* from) noexcept {
    auto* const listener = static_cast<evconnlistener*>(from);
    if (has_room()) evconnlistener_enable(listener);
    else accept_later(listener);
}

/// Clients wait in the socket's queue meanwhile.
void accept_later(evconnlistener* from) noexcept {
    constexpr timeval pause{0, 250'000};
    evconnlistener_disable(from);
    if (event_base_once(evconnlistener_get_base(from), -1, EV_TIMEOUT, accept_again, from,
                        &pause) != 0)
        evconnlistener_enable(from); // no memory
}

void say_once(const char* why) noexcept {
    static bool said = false;
    if (std::exchange(said, true)) return;
    std::fputs("holdfast: metrics: clients wait: ", stderr);
    std::fputs(why, stderr);
    std::fputs("\n", stderr);
}

void accept_failed(evconnlistener* from, void*) noexcept {
    say_once(std::strerror(errno));
    accept_later(from);
}

/// Called for each new connection. Null: libevent makes its usual one.
bufferevent* accepted(event_base*, void* from) noexcept {
    if (!has_room()) {
        say_once("there are as many connections as it has descriptors for");
        accept_later(static_cast<evconnlistener*>(from));
    }
    return nullptr;
}

} // namespace

metrics_page::metrics_page(std::initializer_list<label> common) : common_(labels(common)) {}

std::string metrics_page::labels(std::initializer_list<label> of) {
    std::string out;
    for (const auto& [name, value] : of) {
        if (!out.empty()) out += ',';
        out += name;
        out += "=\"";
        const bool text = is_utf8(value); // nothing else may be on the page
        for (const char c : value) {
            if (c == '\n') out += "\\n";
            else if (!text && (c & 0x80) != 0) out += '?';
            else if (c == '\\' || c == '"') (out += '\\') += c;
            else out += c;
        }
        out += '"';
    }
    return out;
}

void metrics_page::add(std::string_view name, std::string_view kind, std::string_view help,
                       double value, std::initializer_list<label> more) {
    const std::string its = labels(more);
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{{3}{4}{5}}} {6}\n", name, help, kind,
                         common_, its.empty() ? "" : ",", its, value);
}

std::string wrong_in_address(const std::string& address) {
    if (place_of(address)) return {};
    return fmt::format("expected ADDRESS:PORT, as 127.0.0.1:9152 or [::1]:9152, found \"{}\"",
                       address);
}

std::string serve_metrics(const std::string& address, const std::function<std::string()>& page) {
    constexpr int idle_s = 30;
    const auto at = place_of(address);
    if (!at) return wrong_in_address(address);
    std::signal(SIGPIPE, SIG_IGN);                   // a client that goes away
    event_set_log_callback([](int, const char*) {}); // it repeats its warnings
    const std::unique_ptr<event_base, decltype(&event_base_free)> base(event_base_new(),
                                                                       event_base_free);
    const std::unique_ptr<evhttp, decltype(&evhttp_free)> server(
        base ? evhttp_new(base.get()) : nullptr, evhttp_free);
    if (server == nullptr) return "no memory for a server";
    errno = 0;
    evhttp_bound_socket* const bound =
        evhttp_bind_socket_with_handle(server.get(), at->host.c_str(), at->port);
    if (bound == nullptr)
        return fmt::format("expected to listen on {}, found: {}", address, std::strerror(errno));
    evconnlistener* const listener = evhttp_bound_socket_get_listener(bound);
    if (!has_room())
        return fmt::format("expected a higher limit of open files, found none below {} free for "
                           "connections",
                           connections_end());
    evconnlistener_set_error_cb(listener, accept_failed);
    evhttp_set_bevcb(server.get(), accepted, listener);
    evhttp_set_timeout(server.get(), idle_s);
    evhttp_set_max_headers_size(server.get(), 8192);
    evhttp_set_max_body_size(server.get(), 0);
    evhttp_set_allowed_methods(server.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_cb(server.get(), "/metrics", answer,
                  const_cast<std::function<std::string()>*>(&page));
    fmt::print("metrics on http://{}:{}/metrics\n", address.substr(0, address.rfind(':')),
               port_of(evhttp_bound_socket_get_fd(bound)));
    std::fflush(stdout);
    event_base_dispatch(base.get());
    return "expected requests, found that the event loop has ended";
}

} // namespace hf::tools
