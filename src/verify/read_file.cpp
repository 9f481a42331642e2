// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_checks.hpp>
#include <pool/holders.hpp>
#include <verify/read_file.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace hf::verify {
namespace {

errc code_of(int error) noexcept {
    if (error == ENOENT || error == ENOTDIR) return errc::not_found;
    return error == EACCES || error == EPERM ? errc::permission : errc::io_error;
}

status failed(const std::string& path, const char* call) {
    return refusal(path, code_of(errno), fmt::format("{}: {}", call, std::strerror(errno)));
}

/// A lock for reading, which excludes the lock of an open pool; given back with the descriptor.
/// 'command': whether to take it, or only to ask.
bool lock_for_reading(int fd, int command) noexcept {
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    int done = -1;
    do done = ::fcntl(fd, command, &lock);
    while (done != 0 && errno == EINTR);
    return done == 0 && (command == F_OFD_SETLK || lock.l_type == F_UNLCK);
}

} // namespace

result<read_file> read_file::open(const std::string& path) { return open(path, F_OFD_SETLK); }
result<read_file> read_file::look(const std::string& path) { return open(path, F_OFD_GETLK); }

result<read_file> read_file::open(const std::string& path, int command) {
    read_file file;
    // Non-blocking, and looked at afterwards: the name may be a FIFO's.
    do file.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (file.fd_ < 0 && errno == EINTR);
    if (file.fd_ < 0) return failed(path, "open");
    file.in_use_ = !lock_for_reading(file.fd_, command);
    if (status ok = file.map(path, file.fd_); !ok.ok()) return ok;
    return file;
}

result<read_file> read_file::of_locked(const std::string& path, int descriptor) {
    read_file file;
    if (status ok = file.map(path, descriptor); !ok.ok()) return ok;
    return file;
}

status read_file::map(const std::string& path, int descriptor) {
    struct stat about{};
    if (::fstat(descriptor, &about) != 0) return failed(path, "fstat");
    if (!S_ISREG(about.st_mode))
        return refusal(path, errc::not_a_pool, "expected a regular file, found another kind");
    const auto size = static_cast<std::size_t>(about.st_size);
    if (size == 0) return {};
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    if (at == MAP_FAILED) return failed(path, "map");
    bytes_ = {static_cast<const std::byte*>(at), size};
    return {};
}

result<std::span<std::byte>> read_file::own_bytes() {
    auto* const first = const_cast<std::byte*>(bytes_.data());
    if (::mprotect(first, bytes_.size(), PROT_READ | PROT_WRITE) != 0) // it is private
        return status{errc::io_error, fmt::format("mprotect: {}", std::strerror(errno))};
    return std::span(first, bytes_.size());
}

std::string read_file::user() const { return holder_of_lock(fd_); }

read_file::read_file(read_file&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), in_use_(other.in_use_),
      bytes_(std::exchange(other.bytes_, {})) {}

read_file::~read_file() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    if (fd_ >= 0) ::close(fd_);
}

} // namespace hf::verify
