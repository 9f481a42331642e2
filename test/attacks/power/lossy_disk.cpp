// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A disk that loses all that it can, for a program that is started with this library in LD_PRELOAD.
// Written bytes stay in the process until they are synced, so SIGKILL takes everything that a power
// cut could take. Reads return the written bytes.
// LOSSY_SYNC_MS: how long a sync takes; nothing of it is on the disk before its end.
// LOSSY_FAILS:   while this file exists syncs fail, and lose what they should write.
// LOSSY_SYNCS:   a file that grows by a byte for each sync.
#include <linux/magic.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace {

struct pending_write {
    std::uint64_t number;
    off_t at;
    std::vector<char> bytes;
};
struct disk {
    std::mutex lock; // of the writes
    std::uint64_t writes = 0;
    std::map<ino_t, std::vector<pending_write>> pending;
};
disk& the_disk() {
    static auto* const one = new disk; // never destroyed: the pool is closed late
    return *one;
}

template <class Call> Call* real(const char* name) {
    return reinterpret_cast<Call*>(::dlsym(RTLD_NEXT, name));
}
auto* const real_pwrite = real<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
auto* const real_pread = real<ssize_t(int, void*, std::size_t, off_t)>("pread");
auto* const real_fsync = real<int(int)>("fsync");
auto* const real_fstatfs = real<int(int, struct statfs*)>("fstatfs");

ino_t inode_of(int fd) {
    struct stat about{};
    ::fstat(fd, &about);
    return about.st_ino;
}

ssize_t keep(int fd, const void* from, std::size_t count, off_t at) {
    const auto* const bytes = static_cast<const char*>(from);
    disk& d = the_disk();
    const std::scoped_lock held{d.lock};
    d.pending[inode_of(fd)].push_back({++d.writes, at, std::vector<char>(bytes, bytes + count)});
    return static_cast<ssize_t>(count);
}

ssize_t read_through(int fd, void* to, std::size_t count, off_t at) {
    disk& d = the_disk();
    const std::scoped_lock held{d.lock};
    ssize_t got = real_pread(fd, to, count, at);
    if (got < 0) return got;
    const off_t end = at + static_cast<off_t>(count);
    for (const pending_write& w : d.pending[inode_of(fd)]) {
        const off_t first = std::max(at, w.at);
        const off_t last = std::min(end, w.at + static_cast<off_t>(w.bytes.size()));
        if (first >= last) continue;
        auto* const bytes = static_cast<char*>(to);
        if (first - at > got)
            std::memset(bytes + got, 0, static_cast<std::size_t>(first - at - got));
        std::memcpy(bytes + (first - at), w.bytes.data() + (first - w.at),
                    static_cast<std::size_t>(last - first));
        got = std::max(got, last - at);
    }
    return got;
}

int sync_of(int fd) {
    disk& d = the_disk();
    const ino_t inode = inode_of(fd);
    std::uint64_t upto = 0;
    {
        const std::scoped_lock held{d.lock};
        upto = d.writes;
    }
    if (const char* const counted = std::getenv("LOSSY_SYNCS")) {
        const int to = ::open(counted, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        (void)!::write(to, ".", 1);
        ::close(to);
    }
    if (const char* const text = std::getenv("LOSSY_SYNC_MS")) {
        const long ms = std::atol(text);
        const timespec wait{ms / 1000, ms % 1000 * 1'000'000};
        ::nanosleep(&wait, nullptr);
    }
    const char* const fails = std::getenv("LOSSY_FAILS");
    const bool failed = fails != nullptr && ::access(fails, F_OK) == 0;
    const std::scoped_lock held{d.lock};
    auto& pending = d.pending[inode];
    const auto behind =
        std::ranges::find_if(pending, [&](const pending_write& w) { return w.number > upto; });
    if (!failed)
        for (auto w = pending.begin(); w != behind; ++w)
            (void)!real_pwrite(fd, w->bytes.data(), w->bytes.size(), w->at);
    pending.erase(pending.begin(), behind);
    if (!failed) return 0;
    errno = EIO;
    return -1;
}

} // namespace

extern "C" {

ssize_t pwrite(int fd, const void* from, std::size_t count, off_t at) {
    return keep(fd, from, count, at);
}
ssize_t pwrite64(int fd, const void* from, std::size_t count, off_t at) {
    return keep(fd, from, count, at);
}
ssize_t pread(int fd, void* to, std::size_t count, off_t at) {
    return read_through(fd, to, count, at);
}
ssize_t pread64(int fd, void* to, std::size_t count, off_t at) {
    return read_through(fd, to, count, at);
}
int fdatasync(int fd) { return sync_of(fd); }
int fsync(int fd) {
    struct stat about{};
    ::fstat(fd, &about);
    return S_ISDIR(about.st_mode) ? real_fsync(fd) : sync_of(fd);
}
// tmpfs is a disk here, too: all of its syncs are asked for.
int fstatfs(int fd, struct statfs* found) noexcept {
    const int value = real_fstatfs(fd, found);
    if (value == 0) found->f_type = EXT4_SUPER_MAGIC;
    return value;
}

} // extern "C"
