// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "recorder.hpp"

#include <linux/magic.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

namespace hf::power_test {
namespace {

std::mutex lock; // an event is recorded as one with its call
bool recording = false;
std::vector<file_event> events;
std::atomic<std::uint64_t> promised{0};

struct stat about(int fd) {
    struct stat found{};
    ::fstat(fd, &found);
    return found;
}

template <class Call> auto recorded(file_event e, Call&& call) {
    const std::scoped_lock held{lock};
    const auto value = call();
    e.promised = promised;
    if (recording && value >= 0) events.push_back(std::move(e));
    return value;
}

} // namespace

void record() {
    const std::scoped_lock held{lock};
    events.clear();
    promised = 0;
    recording = true;
}
std::vector<file_event> stop() {
    const std::scoped_lock held{lock};
    recording = false;
    return std::move(events);
}
void promise(std::uint64_t updates) { promised = updates; }

} // namespace hf::power_test

using namespace hf::power_test;

extern "C" {

ssize_t __real_pwrite(int, const void*, std::size_t, off_t);
int __real_fdatasync(int);
int __real_fsync(int);
int __real_ftruncate(int, off_t);
int __real_fallocate(int, int, off_t, off_t);
int __real_linkat(int, const char*, int, const char*, int);
int __real_unlink(const char*);
int __real_fstatfs(int, struct statfs*);

ssize_t __wrap_pwrite(int fd, const void* from, std::size_t count, off_t at) {
    const auto* const bytes = static_cast<const char*>(from);
    return recorded({file_event::write,
                     about(fd).st_ino,
                     static_cast<std::uint64_t>(at),
                     std::vector<char>(bytes, bytes + count),
                     {}},
                    [&] { return __real_pwrite(fd, from, count, at); });
}
int __wrap_fdatasync(int fd) {
    return recorded({file_event::sync, about(fd).st_ino, 0, {}, {}},
                    [&] { return __real_fdatasync(fd); });
}
int __wrap_fsync(int fd) {
    const struct stat what = about(fd);
    const auto kind = S_ISDIR(what.st_mode) ? file_event::sync_directory : file_event::sync;
    return recorded({kind, what.st_ino, 0, {}, {}}, [&] { return __real_fsync(fd); });
}
int __wrap_ftruncate(int fd, off_t size) {
    return recorded(
        {file_event::resize, about(fd).st_ino, static_cast<std::uint64_t>(size), {}, {}},
        [&] { return __real_ftruncate(fd, size); });
}
int __wrap_fallocate(int fd, int how, off_t at, off_t count) {
    const struct stat what = about(fd);
    const std::uint64_t end = static_cast<std::uint64_t>(at + count);
    const std::uint64_t size = static_cast<std::uint64_t>(what.st_size);
    return recorded({file_event::resize, what.st_ino, end > size ? end : size, {}, {}},
                    [&] { return __real_fallocate(fd, how, at, count); });
}
int __wrap_linkat(int from_at, const char* from, int to_at, const char* to, int flags) {
    struct stat what{};
    ::stat(from, &what); // through /proc, to the file without a name
    return recorded({file_event::link, what.st_ino, 0, {}, to},
                    [&] { return __real_linkat(from_at, from, to_at, to, flags); });
}
int __wrap_unlink(const char* path) {
    return recorded({file_event::unlink, 0, 0, {}, path}, [&] { return __real_unlink(path); });
}
int __wrap_fstatfs(int fd, struct statfs* found) {
    const int value = __real_fstatfs(fd, found);
    if (value == 0) found->f_type = EXT4_SUPER_MAGIC;
    return value;
}

} // extern "C"
