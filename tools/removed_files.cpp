// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "removed_files.hpp"

#include <pool/header.hpp>

#include <fmt/format.h>

#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace hf::tools {
namespace {

namespace fs = std::filesystem;

/// False where the file has no header that verifies.
bool read_header(const fs::path& file, pool_header& out) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool found = false;
    for (const std::uint64_t copy : {header_a_offset, header_b_offset})
        found = found || (fd >= 0 &&
                          ::pread(fd, &out, sizeof out, static_cast<off_t>(copy)) ==
                              static_cast<ssize_t>(sizeof out) &&
                          out.magic == header_magic && out.checksum == header_checksum(out));
    if (fd >= 0) ::close(fd);
    return found;
}

std::string name_of(const fs::path& process) {
    std::string name;
    std::getline(std::ifstream(process / "comm"), name);
    return name;
}

/// The folder of a removed file. A pool is made without a name, so the kernel does not know its
/// folder.
fs::path folder_of(const fs::path& open_file) {
    std::error_code hidden;
    return fs::read_symlink(open_file, hidden).parent_path();
}

} // namespace

std::string working_on_removed(const std::string& path) {
    std::error_code hidden; // files that this user may not see
    const fs::path folder = fs::absolute(path, hidden).parent_path();
    struct stat here{};
    if (hidden || ::stat(folder.c_str(), &here) != 0) return {};
    pool_header now{}, then{};
    const bool is_there = read_header(path, now);
    for (fs::directory_iterator p("/proc", hidden), end; !hidden && p != end; p.increment(hidden)) {
        std::error_code its;
        for (fs::directory_iterator f(p->path() / "fd", its); !its && f != end; f.increment(its)) {
            struct stat about{};
            if (::stat(f->path().c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
            // A copy that is being made has no name, and the inode of no file.
            if (about.st_nlink != 0 || about.st_dev != here.st_dev) continue;
            if (!read_header(f->path(), then) || then.open == 0 || then.file_inode != about.st_ino)
                continue;
            // A pool that was removed from another folder is of no interest.
            if (is_there ? std::memcmp(now.uuid, then.uuid, sizeof now.uuid) != 0
                         : folder_of(f->path()) != fs::canonical(folder, hidden))
                continue;
            return fmt::format(
                "process {} ({}) works on a pool with layout \"{}\" whose file was removed: what "
                "is in it goes with that process",
                p->path().filename().string(), name_of(p->path()),
                std::string(then.layout, ::strnlen(then.layout, sizeof then.layout)));
        }
    }
    return {};
}

} // namespace hf::tools
