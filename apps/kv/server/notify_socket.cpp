// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "notify_socket.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace hf::kv {

void tell_service_manager(std::string_view state) noexcept {
    const char* const where = std::getenv("NOTIFY_SOCKET");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // A path, or the name of an abstract socket, whose '@' means a zero byte.
    const std::size_t length = where == nullptr ? 0 : std::strlen(where);
    if (length < 2 || length >= sizeof address.sun_path || (*where != '/' && *where != '@')) return;
    std::memcpy(address.sun_path, where, length);
    if (*where == '@') address.sun_path[0] = 0;
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
    (void)::sendto(fd, state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&address), bytes);
    ::close(fd);
}

} // namespace hf::kv
