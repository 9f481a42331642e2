// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "metrics_server.hpp"

#include "contents_text.hpp"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <sys/socket.h>

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

void answer(evhttp_request* asked, void* page) {
    evkeyvalq* const headers = evhttp_request_get_output_headers(asked);
    evhttp_add_header(headers, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    const std::string text = (*static_cast<const std::function<std::string()>*>(page))();
    evbuffer_add(evhttp_request_get_output_buffer(asked), text.data(), text.size());
    evhttp_send_reply(asked, HTTP_OK, "OK", nullptr);
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
    std::signal(SIGPIPE, SIG_IGN); // a client that goes away
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
