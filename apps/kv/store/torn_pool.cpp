// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "torn_pool.hpp"

#include "memory_limit.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace hf::kv {
namespace {

std::string power_log_of(const std::string& pool) {
    return pool + "-power";
} // docs/format/power.md

using file_number = std::pair<dev_t, ino_t>;
constexpr file_number no_file{};

file_number file_at(const std::string& path) {
    struct stat about{};
    return ::lstat(path.c_str(), &about) == 0 ? file_number{about.st_dev, about.st_ino} : no_file;
}

/// A name that neither a pool nor a log has.
std::string name_aside(const std::string& path) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char date[32];
    std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &utc);
    const std::string first = fmt::format("{}.torn-{}", path, date);
    std::string name = first;
    for (unsigned n = 2; file_at(name) != no_file || file_at(power_log_of(name)) != no_file; ++n)
        name = fmt::format("{}-{}", first, n);
    return name;
}

status failed(const std::string& what) {
    const errc code =
        errno == EACCES || errno == EPERM || errno == EROFS ? errc::permission : errc::io_error;
    return {code, fmt::format("{}: {}", what, std::strerror(errno))};
}

/// Renames 'torn', which has the name 'path'. Its lock is held meanwhile, so that of two servers
/// that start at the same moment one does it, and the other does not do it to the new pool. Returns
/// the new name.
result<std::string> set_aside(const std::string& path, file_number torn) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return failed(path + ": cannot be set aside");
    struct closing {
        int fd;
        ~closing() { ::close(fd); }
    } const closes{fd};
    struct flock all{};
    all.l_type = F_WRLCK;
    all.l_whence = SEEK_SET;
    if (::fcntl(fd, F_OFD_SETLK, &all) != 0 || file_at(path) != torn)
        return status{errc::in_use, path + ": in_use: another process has just opened it"};
    const std::string aside = name_aside(path);
    // The log first: a new pool is not made beside the old one's.
    for (const auto& [from, to] :
         {std::pair{power_log_of(path), power_log_of(aside)}, std::pair{path, aside}})
        if (std::rename(from.c_str(), to.c_str()) != 0 && (from == path || errno != ENOENT))
            return failed(fmt::format("{}: cannot be set aside as {}", from, to));
    return aside;
}

void tell(const store_options& options, const std::string& line) {
    if (options.on_damage != nullptr) options.on_damage(line);
    else std::fprintf(stderr, "holdfast-kv: %s\n", line.c_str());
}

} // namespace

result<pool> open_for_service(const store_options& options, open_options how) {
    how.salvage = options.torn == when_torn::salvage;
    const file_number found = file_at(options.path); // before it is judged
    auto opened = open_to_grow(options.path, how);
    if (opened || opened.error().code() != errc::torn) return opened;
    const std::string& why = opened.error().what();
    if (options.torn != when_torn::discard) {
        const char* const salvage =
            options.torn == when_torn::salvage
                ? ""
                : ", --when-torn=salvage serves what is there, wrong values perhaps among it";
        return status{errc::torn,
                      fmt::format("{}; --when-torn=discard sets the file aside and begins empty{}",
                                  why, salvage)};
    }
    const auto aside = set_aside(options.path, found);
    if (!aside) return aside.error();
    tell(options, fmt::format("{}; it is now {}, and the server begins with an empty pool: remove "
                              "it when nothing in it is needed",
                              why, *aside));
    return open_to_grow(options.path, how);
}

} // namespace hf::kv
