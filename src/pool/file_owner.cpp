// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file's owner, permissions, and the name that leads to it.
#include <base/log.hpp>
#include <pool/os_file.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <new>
#include <sys/stat.h>
#include <unistd.h>

namespace hf {

bool os_file::take_owner_of(int descriptor) const noexcept {
    struct stat wanted{}, mine{};
    if (::fstat(descriptor, &wanted) != 0 || ::fstat(fd_, &mine) != 0) return false;
    const bool owner = wanted.st_uid == mine.st_uid || ::fchown(fd_, wanted.st_uid, gid_t(-1)) == 0;
    const bool group = wanted.st_gid == mine.st_gid || ::fchown(fd_, uid_t(-1), wanted.st_gid) == 0;
    const mode_t allowed = wanted.st_mode & (group ? 0777 : 0707);
    return ::fchmod(fd_, allowed) == 0 && owner && group;
}

void os_file::take_owner_or_say(int descriptor) const noexcept try {
    if (take_owner_of(descriptor)) return;
    struct stat wanted{};
    (void)::fstat(descriptor, &wanted);
    say(severity::warning,
        fmt::format("{}: it cannot have the owner and the permissions of the file that it is made "
                    "from (user {}, group {}, mode {:o}): root may give them to it",
                    path_, wanted.st_uid, wanted.st_gid, wanted.st_mode & 07777)
            .c_str());
} catch (const std::bad_alloc&) { // a line less
}

std::string os_file::misplaced() const {
    struct stat mine{}, named{};
    if (fd_ < 0 || ::fstat(fd_, &mine) != 0) return {};
    const bool there = ::stat(full_path_.c_str(), &named) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR) return {};
    if (there && named.st_dev == mine.st_dev && named.st_ino == mine.st_ino) return {};
    const char* const other = there ? "another file has its name now" : "nothing has its name now";
    return mine.st_nlink == 0
               ? fmt::format("its file was removed, {}: what is in it goes with this process",
                             other)
               : fmt::format(
                     "its file was renamed, {}: what is in it is found under that name only",
                     other);
}

} // namespace hf
