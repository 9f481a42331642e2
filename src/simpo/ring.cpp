// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_checks.hpp>
#include <simpo/ring.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace hf::simpo {

result<socket_name> socket_name::of(const std::string& given_path) {
    std::error_code nowhere;
    const std::string real = std::filesystem::canonical(given_path, nowhere).string();
    const std::string& pool_path = nowhere ? given_path : real;
    const std::size_t slash = pool_path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : pool_path.substr(0, slash + 1);
    socket_name made;
    made.directory_ = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (made.directory_ < 0)
        return refusal(pool_path, errno == ENOENT ? errc::not_found : errc::io_error,
                       fmt::format("its directory: {}", std::strerror(errno)));
    const std::string name =
        fmt::format("/proc/self/fd/{}/{}.socket", made.directory_,
                    slash == std::string::npos ? pool_path : pool_path.substr(slash + 1));
    if (name.size() >= sizeof made.address_.sun_path)
        return refusal(pool_path, errc::bad_argument,
                       fmt::format("expected a file name that a socket's address has room for, "
                                   "found one that is {} bytes too long",
                                   name.size() + 1 - sizeof made.address_.sun_path));
    made.address_.sun_family = AF_UNIX;
    name.copy(made.address_.sun_path, name.size());
    return made;
}

socket_name::~socket_name() {
    if (directory_ >= 0) ::close(directory_);
}

status socket_name::of_another_user(const std::string& pool_path) const {
    struct stat there{};
    if (::lstat(path(), &there) != 0 || there.st_uid == ::geteuid()) return {};
    return refusal(
        pool_path, errc::permission,
        fmt::format("its socket, of the pool's name with \".socket\" behind it: expected "
                    "none or one of this user, found one of user {}: a process of that "
                    "user serves the pool, or was killed and left it there; then remove "
                    "it",
                    there.st_uid));
}

namespace {
struct sockets {
    std::mutex lock;
    std::vector<int> open;
};
sockets& all_sockets() { // never destroyed, as of functions.cpp
    static auto* const all = new sockets;
    return *all;
}
[[maybe_unused]] const int watching =
    pthread_atfork([] { all_sockets().lock.lock(); }, [] { all_sockets().lock.unlock(); },
                   [] {
                       for (const int each : all_sockets().open) ::close(each);
                       all_sockets().open.clear();
                       all_sockets().lock.unlock();
                   });
} // namespace

own_socket::table::table() { all_sockets().lock.lock(); }
own_socket::table::~table() { all_sockets().lock.unlock(); }
void own_socket::table::add(int fd) { all_sockets().open.push_back(fd); }

own_socket::~own_socket() {
    if (fd_ < 0 || is_parents()) return;
    const table held;
    std::erase(all_sockets().open, fd_);
    ::close(fd_);
}

bool is_ours(int socket) noexcept {
    ucred other{};
    socklen_t bytes = sizeof other;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &bytes) == 0 &&
           other.uid == ::geteuid();
}

void wake(std::atomic<std::uint32_t>& sleeps, int socket) noexcept {
    if (sleeps.load(std::memory_order_relaxed) == 0) return;
    sleeps.store(0, std::memory_order_relaxed);
    const char byte = 0;
    (void)::send(socket, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool take_bytes(int socket) noexcept {
    char bytes[64];
    const ssize_t taken = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
    return taken > 0 || (taken < 0 && (errno == EAGAIN || errno == EINTR));
}

} // namespace hf::simpo
