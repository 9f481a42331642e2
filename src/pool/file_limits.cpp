// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <pool/file_limits.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <sys/resource.h>
#include <unistd.h>

namespace hf {

std::uint64_t file_bytes_allowed() noexcept {
    struct rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return ~std::uint64_t{0};
    return limit.rlim_cur;
}

std::string way_out_of(int error) {
    switch (error) {
    case ENOSPC: return "; the file system is full: free space on it";
    case EDQUOT: return "; the disk quota of the file's owner is used up: free space, or raise it";
    case EFBIG: break;
    default: return {};
    }
    const std::uint64_t allowed = file_bytes_allowed();
    if (allowed == ~std::uint64_t{0}) return "; the file system allows no longer files";
    return fmt::format("; this process may make no file longer than {} bytes (ulimit -f): raise "
                       "that limit",
                       allowed);
}

std::string whose_file(unsigned owner, unsigned mode) {
    return fmt::format("open: Permission denied: the file is that of user {} with mode {:03o}, and "
                       "this process is user {}",
                       owner, mode & 0777U, ::geteuid());
}

} // namespace hf
