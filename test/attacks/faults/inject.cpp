// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "inject.hpp"

#include <linux/magic.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace hf::faults {
namespace {

std::atomic<bool> armed{false};
std::atomic<unsigned> pauses{0};
std::atomic<std::uint64_t> calls{0}, allocations{0};
std::atomic<bool> injected{false};
plan current;
tally* counts = nullptr;
void (*before_injection)() = nullptr;
medium pretended = medium::tmpfs;

struct verdict {
    int error = 0;
    bool kill_after = false;
};

[[noreturn]] void die() {
    ::kill(::getpid(), SIGKILL);
    ::_exit(1);
}

bool watching() noexcept { return armed.load() && pauses.load() == 0; }

void note_injection(call which) noexcept {
    if (injected.exchange(true)) return;
    counts->injected = true;
    counts->injected_into = which;
    if (before_injection != nullptr) before_injection();
}

verdict judge(call which) noexcept {
    if (!watching()) return {};
    const std::uint64_t n = ++calls;
    counts->calls = n;
    if (n <= order_max) counts->order[n - 1] = which;
    if (n == current.killed_at) die();
    if (current.what == action::fail_call) {
        const bool again = current.lasting && injected.load() && which == counts->injected_into;
        if (n != current.at && !again) return {};
        note_injection(which);
        return {.error = current.error};
    }
    if (n != current.at) return {};
    if (current.what == action::kill_before_call) die();
    return {.kill_after = current.what == action::kill_after_call};
}

/// 'real(half)' makes the call, of half the length when 'half'.
template <class Result, class Real> Result through(call which, Result failed, Real&& real) {
    const verdict v = judge(which);
    if (v.error > 0) {
        errno = v.error;
        return failed;
    }
    // With a thread beside, the number may have come to another call than the plan was made for.
    if (v.error == no_transfer && which == call::pwrite) return Result{};
    const Result value = real(v.error == short_transfer);
    if (v.kill_after) die();
    return value;
}

std::size_t part(std::size_t count, bool half) { return half && count > 1 ? count / 2 : count; }

/// Whether this allocation must fail.
bool allocation_fails() noexcept {
    if (!watching()) return false;
    const std::uint64_t n = ++allocations;
    counts->allocations = n;
    if (current.what != action::fail_allocation) return false;
    if (n != current.at && !(current.lasting && n > current.at)) return false;
    note_injection(call::open);
    return true;
}

} // namespace

const char* name(call which) noexcept {
    constexpr const char* names[] = {
        "open",           "close",       "fstat",        "lstat",        "stat",      "fstatfs",
        "fcntl",          "pread",       "pwrite",       "read",         "fallocate", "ftruncate",
        "fsync",          "mmap",        "munmap",       "msync",        "madvise",   "getrandom",
        "getrlimit",      "unlink",      "linkat",       "link",         "renameat2", "statx",
        "pthread_create", "sigaltstack", "timer_create", "timer_settime"};
    static_assert(std::size(names) == static_cast<std::size_t>(call::timer_settime) + 1);
    return names[static_cast<std::size_t>(which)];
}

std::span<const int> errors_of(call which) noexcept {
    static constexpr int open_errors[] = {EINTR, EMFILE, ENFILE, ENOMEM,    EACCES,
                                          EIO,   ENOSPC, EDQUOT, EOPNOTSUPP};
    static constexpr int close_errors[] = {EINTR, EIO};
    static constexpr int stat_errors[] = {ENOMEM, EIO, EACCES};
    static constexpr int fstatfs_errors[] = {EINTR, EIO, ENOMEM};
    static constexpr int fcntl_errors[] = {EINTR, EAGAIN, EACCES, ENOLCK};
    static constexpr int read_errors[] = {EINTR, EIO, short_transfer};
    static constexpr int write_errors[] = {EINTR, EIO, ENOSPC, EDQUOT, short_transfer, no_transfer};
    static constexpr int fallocate_errors[] = {EINTR, EIO, ENOSPC, EDQUOT, EOPNOTSUPP};
    static constexpr int ftruncate_errors[] = {EINTR, EIO};
    static constexpr int fsync_errors[] = {EINTR, EIO, ENOSPC, EDQUOT};
    static constexpr int mmap_errors[] = {ENOMEM, EAGAIN, ENFILE, EEXIST};
    static constexpr int munmap_errors[] = {ENOMEM};
    static constexpr int msync_errors[] = {EIO, ENOMEM, EBUSY, ENOSPC};
    static constexpr int madvise_errors[] = {EINTR, ENOMEM, EAGAIN};
    static constexpr int getrandom_errors[] = {EINTR, EAGAIN, ENOSYS, short_transfer};
    static constexpr int getrlimit_errors[] = {EINVAL};
    static constexpr int unlink_errors[] = {EIO};
    static constexpr int link_errors[] = {EIO, ENOSPC, EACCES, EEXIST};
    static constexpr int rename_errors[] = {EIO, ENOSPC, EACCES, EEXIST, EINVAL};
    static constexpr int thread_errors[] = {EAGAIN};
    static constexpr int sigaltstack_errors[] = {ENOMEM, EPERM};
    static constexpr int timer_errors[] = {EAGAIN, ENOMEM};
    switch (which) {
    case call::open: return open_errors;
    case call::close: return close_errors;
    case call::fstat:
    case call::lstat:
    case call::stat: return stat_errors;
    case call::fstatfs: return fstatfs_errors;
    case call::fcntl: return fcntl_errors;
    case call::pread:
    case call::read: return read_errors;
    case call::pwrite: return write_errors;
    case call::fallocate: return fallocate_errors;
    case call::ftruncate: return ftruncate_errors;
    case call::fsync: return fsync_errors;
    case call::mmap: return mmap_errors;
    case call::munmap: return munmap_errors;
    case call::msync: return msync_errors;
    case call::madvise: return madvise_errors;
    case call::getrandom: return getrandom_errors;
    case call::getrlimit: return getrlimit_errors;
    case call::unlink: return unlink_errors;
    case call::linkat:
    case call::link: return link_errors;
    case call::renameat2: return rename_errors;
    case call::statx: return stat_errors;
    case call::pthread_create: return thread_errors;
    case call::sigaltstack: return sigaltstack_errors;
    case call::timer_create: return timer_errors;
    case call::timer_settime: return getrlimit_errors;
    }
    return {};
}

void arm(const plan& given, tally& into, void (*at_injection)()) noexcept {
    current = given;
    into = tally{};
    counts = &into;
    before_injection = at_injection;
    calls = allocations = 0;
    injected = false;
    armed = true;
}

void disarm() noexcept { armed = false; }

pause::pause() noexcept { ++pauses; }
pause::~pause() { --pauses; }

void pretend(medium given) noexcept { pretended = given; }

} // namespace hf::faults

using namespace hf::faults;

extern "C" {

int __real_open(const char*, int, mode_t);
int __real_close(int);
int __real_fstat(int, struct stat*);
int __real_lstat(const char*, struct stat*);
int __real_stat(const char*, struct stat*);
int __real_fstatfs(int, struct statfs*);
int __real_fcntl(int, int, void*);
ssize_t __real_pread(int, void*, std::size_t, off_t);
ssize_t __real_pwrite(int, const void*, std::size_t, off_t);
ssize_t __real_read(int, void*, std::size_t);
int __real_fallocate(int, int, off_t, off_t);
int __real_ftruncate(int, off_t);
int __real_fsync(int);
int __real_fdatasync(int);
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);
int __real_msync(void*, std::size_t, int);
int __real_madvise(void*, std::size_t, int);
ssize_t __real_getrandom(void*, std::size_t, unsigned);
int __real_getrlimit(int, struct rlimit*);
int __real_unlink(const char*);
int __real_linkat(int, const char*, int, const char*, int);
int __real_link(const char*, const char*);
int __real_renameat2(int, const char*, int, const char*, unsigned);
int __real_statx(int, const char*, int, unsigned, struct statx*);
int __real_sigaltstack(const stack_t*, stack_t*);
int __real_timer_create(clockid_t, struct sigevent*, timer_t*);
int __real_timer_settime(timer_t, int, const struct itimerspec*, struct itimerspec*);
void* __real_calloc(std::size_t, std::size_t);

int __wrap_open(const char* path, int flags, mode_t permissions) {
    if ((flags & O_TMPFILE) == O_TMPFILE && pretended >= medium::named) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return through(call::open, -1, [&](bool) { return __real_open(path, flags, permissions); });
}
int __wrap_close(int fd) {
    const verdict v = judge(call::close);
    const int value = __real_close(fd); // Linux gives the descriptor back whatever it answers
    if (v.kill_after) die();
    if (v.error <= 0) return value;
    errno = v.error;
    return -1;
}
int __wrap_fstat(int fd, struct stat* about) {
    return through(call::fstat, -1, [&](bool) { return __real_fstat(fd, about); });
}
int __wrap_lstat(const char* path, struct stat* about) {
    return through(call::lstat, -1, [&](bool) { return __real_lstat(path, about); });
}
int __wrap_stat(const char* path, struct stat* about) {
    return through(call::stat, -1, [&](bool) { return __real_stat(path, about); });
}
int __wrap_fstatfs(int fd, struct statfs* about) {
    const int value = through(call::fstatfs, -1, [&](bool) { return __real_fstatfs(fd, about); });
    if (value == 0 && pretended != medium::tmpfs) about->f_type = EXT4_SUPER_MAGIC;
    return value;
}
int __wrap_fcntl(int fd, int command, void* argument) {
    return through(call::fcntl, -1, [&](bool) { return __real_fcntl(fd, command, argument); });
}
ssize_t __wrap_pread(int fd, void* to, std::size_t count, off_t at) {
    return through(call::pread, ssize_t{-1},
                   [&](bool half) { return __real_pread(fd, to, part(count, half), at); });
}
ssize_t __wrap_pwrite(int fd, const void* from, std::size_t count, off_t at) {
    return through(call::pwrite, ssize_t{-1},
                   [&](bool half) { return __real_pwrite(fd, from, part(count, half), at); });
}
ssize_t __wrap_read(int fd, void* to, std::size_t count) {
    return through(call::read, ssize_t{-1},
                   [&](bool half) { return __real_read(fd, to, part(count, half)); });
}
int __wrap_fallocate(int fd, int how, off_t at, off_t count) {
    return through(call::fallocate, -1, [&](bool) { return __real_fallocate(fd, how, at, count); });
}
int __wrap_ftruncate(int fd, off_t count) {
    return through(call::ftruncate, -1, [&](bool) { return __real_ftruncate(fd, count); });
}
int __wrap_fsync(int fd) {
    return through(call::fsync, -1, [&](bool) { return __real_fsync(fd); });
}
int __wrap_fdatasync(int fd) {
    return through(call::fsync, -1, [&](bool) { return __real_fdatasync(fd); });
}
void* __wrap_mmap(void* at, std::size_t count, int access, int flags, int fd, off_t offset) {
    if (pretended == medium::dax && (flags & MAP_SYNC) != 0)
        flags = (flags & ~(MAP_SYNC | MAP_SHARED_VALIDATE)) | MAP_SHARED;
    return through(call::mmap, MAP_FAILED,
                   [&](bool) { return __real_mmap(at, count, access, flags, fd, offset); });
}
int __wrap_munmap(void* at, std::size_t count) {
    return through(call::munmap, -1, [&](bool) { return __real_munmap(at, count); });
}
int __wrap_msync(void* at, std::size_t count, int how) {
    return through(call::msync, -1, [&](bool) { return __real_msync(at, count, how); });
}
int __wrap_madvise(void* at, std::size_t count, int advice) {
    return through(call::madvise, -1, [&](bool) { return __real_madvise(at, count, advice); });
}
ssize_t __wrap_getrandom(void* to, std::size_t count, unsigned flags) {
    return through(call::getrandom, ssize_t{-1},
                   [&](bool half) { return __real_getrandom(to, part(count, half), flags); });
}
int __wrap_getrlimit(int resource, struct rlimit* limit) {
    return through(call::getrlimit, -1, [&](bool) { return __real_getrlimit(resource, limit); });
}
int __wrap_unlink(const char* path) {
    return through(call::unlink, -1, [&](bool) { return __real_unlink(path); });
}
int __wrap_linkat(int from, const char* path, int to, const char* name, int flags) {
    return through(call::linkat, -1,
                   [&](bool) { return __real_linkat(from, path, to, name, flags); });
}
int __wrap_link(const char* path, const char* name) {
    return through(call::link, -1, [&](bool) { return __real_link(path, name); });
}
int __wrap_renameat2(int from, const char* path, int to, const char* name, unsigned flags) {
    if (pretended == medium::linked) {
        errno = EINVAL;
        return -1;
    }
    return through(call::renameat2, -1,
                   [&](bool) { return __real_renameat2(from, path, to, name, flags); });
}
int __wrap_statx(int fd, const char* path, int flags, unsigned mask, struct statx* about) {
    return through(call::statx, -1,
                   [&](bool) { return __real_statx(fd, path, flags, mask, about); });
}
int __wrap_sigaltstack(const stack_t* given, stack_t* before) {
    return through(call::sigaltstack, -1, [&](bool) { return __real_sigaltstack(given, before); });
}
int __wrap_timer_create(clockid_t clock, struct sigevent* event, timer_t* timer) {
    return through(call::timer_create, -1,
                   [&](bool) { return __real_timer_create(clock, event, timer); });
}
int __wrap_timer_settime(timer_t timer, int flags, const struct itimerspec* given,
                         struct itimerspec* before) {
    return through(call::timer_settime, -1,
                   [&](bool) { return __real_timer_settime(timer, flags, given, before); });
}
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
    if (!allocation_fails()) return __real_calloc(count, bytes);
    errno = ENOMEM;
    return nullptr;
}

// std::thread calls it inside libstdc++, where no link option reaches: this definition takes the
// place of libc's for the whole process.
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*body)(void*), void* argument) {
    using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_create"));
    const verdict v = judge(call::pthread_create);
    if (v.error > 0) return v.error;
    const int value = real(thread, attributes, body, argument);
    if (v.kill_after) die();
    return value;
}

} // extern "C"

// Arrays and the non-throwing forms come here as well, by libstdc++'s definitions of those.
void* operator new(std::size_t bytes) {
    void* const memory = allocation_fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto unit = static_cast<std::size_t>(alignment);
    void* const memory =
        allocation_fails() ? nullptr : std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
