// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pid_file.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace hf::kv {
namespace {

status failed(const std::string& path) {
    return {errc::io_error, "cannot write " + path + ": " + std::strerror(errno)};
}

} // namespace

pid_file::~pid_file() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (made_) (void)::unlink(path_.c_str());
}

status pid_file::open(const std::string& path) {
    if (path.empty()) return {};
    constexpr int how = O_WRONLY | O_CLOEXEC;
    fd_ = ::open(path.c_str(), how | O_CREAT | O_EXCL, 0644);
    made_ = fd_ >= 0;
    if (fd_ < 0 && errno == EEXIST) fd_ = ::open(path.c_str(), how);
    if (fd_ < 0) return failed(path);
    path_ = path;
    return {};
}

status pid_file::write() {
    if (fd_ < 0) return {};
    made_ = false;
    const std::string line = std::to_string(::getpid()) + '\n';
    const auto length = static_cast<ssize_t>(line.size());
    if (::ftruncate(fd_, 0) != 0 && errno != EINVAL) return failed(path_); // EINVAL: no plain file
    if (::write(fd_, line.data(), line.size()) != length) return failed(path_);
    return {};
}

void pid_file::remove() noexcept {
    if (fd_ < 0) return;
    if (::unlink(path_.c_str()) != 0) (void)!::ftruncate(fd_, 0);
    ::close(std::exchange(fd_, -1));
}

} // namespace hf::kv
