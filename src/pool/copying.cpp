// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/boot_id.hpp>
#include <pool/copying.hpp>
#include <pool/file_checks.hpp>
#include <pool/file_limits.hpp>
#include <pool/freezing.hpp>
#include <pool/header.hpp>
#include <pool/holders.hpp>
#include <pool/os_file.hpp>

#include <fmt/format.h>
#include <linux/magic.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hf {
namespace {

constexpr std::uint64_t step_bytes = 4ULL << 20, page_bytes = 4096, piece_bytes = 256 << 10;
constexpr unsigned attempts_max = 20;

/// On tmpfs a hole that is touched takes its space back, even when it is read; on a full disk that
/// is SIGBUS.
bool reading_fills(int descriptor) noexcept {
    struct stat about{};
    struct statfs system{};
    return ::fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC &&
           ::fstat(descriptor, &about) == 0 && about.st_blocks * 512 < about.st_size;
}

/// A file's bytes, mapped. Its end is not checked again: mapped bytes must stay in the file.
class view {
public:
    view() = default;
    view(const view&) = delete;
    view& operator=(const view&) = delete;
    ~view() { release(); }
    /// 0, or the error. Allocates nothing, here and below: called in the helper, too.
    int map(int descriptor, std::uint64_t bytes, int how) noexcept {
        release();
        if (bytes == 0) return 0;
        const int touched = reading_fills(descriptor) ? 0 : MAP_POPULATE;
        void* const at = ::mmap(nullptr, bytes, how, MAP_SHARED | touched, descriptor, 0);
        if (at == MAP_FAILED) return errno;
        at_ = static_cast<std::byte*>(at);
        bytes_ = bytes;
        return 0;
    }
    void release() noexcept {
        if (at_ != nullptr) ::munmap(at_, bytes_);
        at_ = nullptr;
        bytes_ = 0;
    }
    std::byte* at() const noexcept { return at_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

private:
    std::byte* at_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// Makes 'to' equal to 'from', page by page. Returns the bytes of the pages that differed.
std::uint64_t make_equal(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
    std::uint64_t changed = 0;
    for (std::uint64_t at = 0; at < bytes; at += page_bytes) {
        const std::uint64_t n = std::min(page_bytes, bytes - at);
        if (std::memcmp(to + at, from + at, n) == 0) continue;
        std::memcpy(to + at, from + at, n);
        changed += n;
    }
    return changed;
}

/// Makes 'to' zeros.
std::uint64_t make_zero(std::byte* to, std::uint64_t bytes) noexcept {
    static constexpr std::byte zeros[page_bytes]{};
    std::uint64_t changed = 0;
    for (std::uint64_t at = 0; at < bytes; at += page_bytes)
        changed += make_equal(to + at, zeros, std::min(page_bytes, bytes - at));
    return changed;
}

/// Makes 'to' equal to a file that nobody changes. It does not look into the file's holes, except
/// in file systems where SEEK_DATA has missed what was stored through a mapping.
std::uint64_t make_equal_to_file(std::byte* to, const view& from, int descriptor) noexcept {
    const std::uint64_t end = from.bytes();
    if (!reading_fills(descriptor)) return make_equal(to, from.at(), end);
    std::uint64_t changed = 0;
    for (std::uint64_t at = 0; at < end;) {
        const off_t data = ::lseek(descriptor, static_cast<off_t>(at), SEEK_DATA);
        const bool none =
            data < 0 && errno == ENXIO; // none behind 'at'; on any other error all is read
        const off_t hole = data < 0 ? data : ::lseek(descriptor, data, SEEK_HOLE);
        const std::uint64_t start =
            data < 0 ? (none ? end : at) : std::min(static_cast<std::uint64_t>(data), end);
        const std::uint64_t stop = hole < 0 ? end : std::min(static_cast<std::uint64_t>(hole), end);
        changed += make_zero(to + at, start - at);
        changed += make_equal(to + start, from.at() + start, stop - start);
        at = stop;
    }
    return changed;
}

/// The call that failed, reported through memory that a helper shares.
enum class step : int { done, freeze, size, allocate, map };

/// Input and results of the moment of the copy. In shared memory, so plain words only.
struct moment {
    int from = -1, to = -1; // descriptors
    step failed = step::done;
    int error = 0;
    frozen_process::outcome frozen = frozen_process::outcome::gone;
    std::uint64_t bytes = 0; // of the file
    std::uint64_t changed = 0;
    std::int64_t pause_ns = 0;
    std::atomic<bool> may_begin = false;
};

std::int64_t now_ns() noexcept {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// Makes the copy equal to the file. The file's owner is stopped, or it has none.
void copy_what_differs(moment& m, view& from, view& to) noexcept {
    const auto fails = [&](step which) {
        m.failed = which;
        m.error = errno;
    };
    struct stat about{};
    if (::fstat(m.from, &about) != 0) return fails(step::size);
    m.bytes = static_cast<std::uint64_t>(about.st_size);
    if (m.bytes != from.bytes()) { // it has grown; do not read behind the old end now
        errno = m.bytes > file_bytes_allowed() ? EFBIG : 0; // asked, that is SIGXFSZ
        if (errno != 0 || ::ftruncate(m.to, about.st_size) != 0) return fails(step::size);
        if (::fallocate(m.to, 0, 0, about.st_size) != 0 && errno != EOPNOTSUPP)
            return fails(step::allocate);
        const int from_failed = from.map(m.from, m.bytes, PROT_READ);
        const int to_failed = to.map(m.to, m.bytes, PROT_READ | PROT_WRITE);
        errno = from_failed != 0 ? from_failed : to_failed;
        if (errno != 0) return fails(step::map);
    }
    m.changed = make_equal_to_file(to.at(), from, m.from);
}

/// Upholds (2): the owner is stopped for this, and for nothing else.
void copy_in_a_moment(moment& m, pid_t owner, view& from, view& to,
                      frozen_process& stopped) noexcept {
    const std::int64_t begun = now_ns();
    m.frozen = stopped.freeze(owner);
    if (m.frozen == frozen_process::outcome::frozen) copy_what_differs(m, from, to);
    else m.failed = step::freeze;
    stopped.thaw();
    m.pause_ns = now_ns() - begun;
}

class copier {
public:
    copier(const std::string& from, const std::string& to, const copy_options& options)
        : from_path_(from), to_path_(to), options_(options) {}

    /// Creates the copy's file, and fills it while its owner, if there is one, works on. 'bytes':
    /// of the pool, which never shrinks.
    status prepare(int from, std::uint64_t bytes) {
        from_ = from;
        auto made = os_file::create_new(to_path_);
        if (!made) return made.error();
        to_.take(*made);
        if (status ok = to_.allocate(0, bytes); !ok.ok()) return ok;
        const int from_failed = from_view_.map(from_, bytes, PROT_READ);
        const int to_failed = to_view_.map(to_.descriptor(), bytes, PROT_READ | PROT_WRITE);
        if (from_failed != 0 || to_failed != 0)
            return failed("map", from_failed != 0 ? from_failed : to_failed);
        for (unsigned pass = 0; pass < 2; ++pass)
            for (std::uint64_t at = 0; at < bytes; at += step_bytes) {
                const std::uint64_t n = std::min(step_bytes, bytes - at);
                if (status ok = read_ahead(at, at + n); !ok.ok()) return ok;
                if (options_.progress != nullptr && pass == 0)
                    options_.progress(options_.context, at + n, bytes);
            }
        return {};
    }
    /// Copies the rest of a file that nobody changes.
    status finish_unused() {
        moment m;
        describe(m);
        copy_what_differs(m, from_view_, to_view_);
        m.changed = 0; // nobody waited for it
        return judged(m);
    }
    /// Copies the rest while 'owner' is stopped.
    status finish_beside(pid_t owner) {
        const auto stopped = std::make_unique<frozen_process>();
        moment m;
        describe(m);
        copy_in_a_moment(m, owner, from_view_, to_view_, *stopped);
        last_frozen_ = m.frozen;
        report_.in_use = true;
        return judged(m);
    }
    status finish_from_helper();
    /// Why finish_beside failed.
    frozen_process::outcome last_frozen() const noexcept { return last_frozen_; }
    /// The header that counts, of the copy as it is now.
    result<pool_header> header() const {
        header_bytes_read read;
        read.file_bytes = report_.bytes;
        if (status ok = to_.read_at(header_a_offset, read.page_a, sizeof read.page_a); !ok.ok())
            return ok;
        if (status ok = to_.read_at(header_b_offset, read.page_b, sizeof read.page_b); !ok.ok())
            return ok;
        auto chosen = choose_header(from_path_, read);
        if (!chosen) return chosen.error();
        return chosen->header;
    }
    /// Upholds (3), (4). 'whole': the header may say so.
    result<copy_report> publish(bool whole, const copy_check& check) {
        if (whole)
            if (status ok = say_whole(); !ok.ok()) return ok;
        to_.take_owner_or_say(from_);
        if (status ok = to_.sync(); !ok.ok()) return ok;
        if (check)
            if (status ok = check(to_); !ok.ok()) return ok;
        if (const auto bytes = to_.size_bytes()) report_.bytes = *bytes; // with its seal
        if (status ok = to_.publish(); !ok.ok()) return ok;
        if (status ok = to_.sync_directory(); !ok.ok()) return ok;
        return report_;
    }
    ~copier() {
        // A file without a name need not be removed. If the file system has no such files, the name
        // goes with a copy that failed.
        if (!published_) to_.unlink();
    }
    void keep() noexcept { published_ = true; }

private:
    /// Read, and not through the mapping: its owner may be making holes.
    status read_ahead(std::uint64_t at, std::uint64_t end) {
        if (piece_ == nullptr) piece_ = std::make_unique_for_overwrite<std::byte[]>(piece_bytes);
        while (at < end) {
            const std::uint64_t wanted = std::min(piece_bytes, end - at);
            const ssize_t n = ::pread(from_, piece_.get(), wanted, static_cast<off_t>(at));
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return failed("read", n < 0 ? errno : EIO); // cut short
            (void)make_equal(to_view_.at() + at, piece_.get(), static_cast<std::uint64_t>(n));
            at += static_cast<std::uint64_t>(n);
        }
        return {};
    }
    void describe(moment& m) const noexcept {
        m.from = from_;
        m.to = to_.descriptor();
    }
    status failed(const char* call, int error) const {
        return refusal(to_path_,
                       error == ENOSPC || error == EDQUOT || error == EFBIG ? errc::pool_full
                                                                            : errc::io_error,
                       fmt::format("{}: {}{}", call, std::strerror(error), way_out_of(error)));
    }
    status judged(const moment& m) {
        report_.bytes = m.bytes;
        report_.bytes_in_pause = m.changed;
        report_.pause_ms = static_cast<double>(m.pause_ns) / 1e6;
        switch (m.failed) {
        case step::done: return {};
        case step::size: return failed("fstat", m.error);
        case step::allocate: return failed("allocate", m.error);
        case step::map: return failed("map", m.error);
        case step::freeze: break;
        }
        using why = frozen_process::outcome;
        return refusal(
            from_path_, m.frozen == why::refused ? errc::permission : errc::io_error,
            m.frozen == why::refused
                ? "its process cannot be stopped for the moment of the copy: it is another "
                  "user's, a debugger has it, or the system allows no ptrace"
            : m.frozen == why::too_slow ? "a thread of its process did not stop within a second"
            : m.frozen == why::too_many ? "its process has more than 4096 threads"
                                        : "its process has ended meanwhile");
    }
    status say_whole() {
        for (const std::uint64_t at : {header_a_offset, header_b_offset}) {
            pool_header h{};
            if (status ok = to_.read_at(at, &h, sizeof h); !ok.ok()) return ok;
            if (h.magic != header_magic || h.checksum != header_checksum(h) || h.open == 0)
                continue;
            h.optional_features |= feature_whole;
            h.file_inode = h.file_birth_ns = 0;
            h.checksum = header_checksum(h);
            if (status ok = to_.write_at(at, &h, sizeof h); !ok.ok()) return ok;
        }
        return {};
    }

    const std::string &from_path_, &to_path_;
    const copy_options& options_;
    os_file to_;
    int from_ = -1;
    view from_view_, to_view_;
    std::unique_ptr<std::byte[]> piece_;
    copy_report report_;
    frozen_process::outcome last_frozen_ = frozen_process::outcome::frozen;
    bool published_ = false;
};

/// Runs in a child that stops its parent. A bare clone makes the child, so that no fork() handler
/// closes the parent's files in it, and it sends no signal when it ends. It owns nothing, allocates
/// nothing and takes no lock: other threads of the parent may have held any.
status copier::finish_from_helper() {
    void* const shared = ::mmap(nullptr, sizeof(moment) + sizeof(frozen_process),
                                PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return failed("map", errno);
    moment& m = *::new (shared) moment;
    auto& stopped = *::new (static_cast<std::byte*>(shared) + sizeof(moment)) frozen_process;
    describe(m);
    m.failed = step::freeze;
    const pid_t parent = ::getpid();
    const auto helper =
        static_cast<pid_t>(::syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, 0UL));
    if (helper == 0) {
        (void)::prctl(PR_SET_PDEATHSIG, SIGKILL); // it must not keep the pool locked for its parent
        if (::getppid() != parent) ::_exit(1);
        while (!m.may_begin.load(std::memory_order_acquire)) ::usleep(50);
        m.failed = step::done;
        copy_in_a_moment(m, parent, from_view_, to_view_, stopped);
        ::_exit(0);
    }
    const int cloned = errno;
    if (helper > 0) {
        (void)::prctl(PR_SET_PTRACER, helper); // if the system asks for it
        m.may_begin.store(true, std::memory_order_release);
        int how = 0;
        while (::waitpid(helper, &how, __WALL) < 0 && errno == EINTR) {}
        if (!WIFEXITED(how)) m.failed = step::freeze, m.frozen = frozen_process::outcome::refused;
    }
    const status done = helper > 0 ? judged(m) : failed("clone", cloned);
    report_.in_use = true;
    ::munmap(shared, sizeof(moment) + sizeof(frozen_process));
    return done;
}

std::uint64_t pool_end(const pool_header& h) noexcept {
    const extent& last = h.extents[h.extent_count - 1];
    return last.offset_bytes + last.size_bytes;
}

/// Whether this process has the lock now; of an open pool it is another's.
bool lock_shared(int descriptor) noexcept {
    struct flock lock{};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    return ::fcntl(descriptor, F_OFD_SETLK, &lock) == 0;
}

struct descriptor {
    int fd = -1;
    ~descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

/// The header that counts of a file that may be changing.
result<pool_header> header_of(const std::string& path, int fd) {
    header_bytes_read read;
    struct stat about{};
    if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return refusal(path, errc::not_a_pool, "expected a regular file, found another kind");
    read.file_bytes = static_cast<std::uint64_t>(about.st_size);
    (void)!::pread(fd, read.page_a, sizeof read.page_a, header_a_offset);
    (void)!::pread(fd, read.page_b, sizeof read.page_b, header_b_offset);
    auto chosen = choose_header(path, read);
    if (!chosen) return chosen.error();
    if (status ok = check_header(path, chosen->header, read.file_bytes); !ok.ok()) return ok;
    const pool_header& h = chosen->header;
    if (h.open != 0 && (h.required_features & feature_power_log) != 0)
        return refusal(
            path, errc::mode_unavailable,
            "open, or left open, in mode power: part of it is in its log, and a copy of the file "
            "would lack that; expected a pool that is closed, or in another mode");
    return h;
}

std::mutex one_copy; // of this process: one helper at a time stops it

} // namespace

result<copy_report> copy_pool_file(const std::string& from, const std::string& to,
                                   const copy_options& options, const copy_check& check) try {
    descriptor source{::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (source.fd < 0)
        return refusal(from,
                       errno == ENOENT   ? errc::not_found
                       : errno == EACCES ? errc::permission
                                         : errc::io_error,
                       fmt::format("open: {}", std::strerror(errno)));
    for (unsigned attempt = 0; attempt < attempts_max; ++attempt) {
        const bool unused = lock_shared(source.fd);
        const lock_holder owner = unused ? lock_holder{0, ""} : find_lock_holder(source.fd);
        const auto before = header_of(from, source.fd);
        if (!before) return before.error();
        if (!unused && owner.process == 0 && attempt + 1 == attempts_max)
            return refusal(from, errc::permission,
                           "open in another process, which cannot be seen from here: copy it as "
                           "root, or from the program itself (hf::pool::copy_to)");
        if (!unused && owner.process == 0) {
            ::usleep(1000); // it may just have ended
            continue;
        }
        copier copying(from, to, options);
        if (status ok = copying.prepare(source.fd, pool_end(*before)); !ok.ok()) return ok;
        status done = unused ? copying.finish_unused() : copying.finish_beside(owner.process);
        if (!done.ok() && !unused && copying.last_frozen() != frozen_process::outcome::frozen) {
            // The refusal may be about a process that has ended meanwhile; otherwise it is final.
            if (find_lock_holder(source.fd).process != owner.process) continue;
            return done;
        }
        if (!done.ok()) return done;
        const auto copied = copying.header();
        if (!copied) return copied.error();
        // It had the pool before and afterwards, and nobody has opened the pool in between: so it
        // had the pool at the moment of the copy as well.
        if (!unused && (copied->generation != before->generation ||
                        find_lock_holder(source.fd).process != owner.process))
            continue;
        const auto boot = boot_here(from);
        if (!boot) return boot.error();
        struct stat about{};
        (void)::fstat(source.fd, &about);
        // A pool that was in doubt before stays in doubt.
        const bool same_file = copied->file_inode == 0 || copied->file_inode == about.st_ino;
        const bool whole =
            !unused || (same_file && same_boot(*copied, **boot)) || is_whole_copy(*copied);
        auto made = copying.publish(whole, check);
        if (made) copying.keep();
        return made;
    }
    return refusal(from, errc::in_use, "another process opened it at each try: try again");
} catch (const std::bad_alloc&) {
    return out_of_memory(from);
}

result<copy_report> copy_own_file(const os_file& from, const std::string& path,
                                  const std::string& to, const copy_options& options,
                                  const copy_check& check) try {
    const std::scoped_lock held{one_copy};
    const auto now = header_of(path, from.descriptor());
    if (!now) return now.error();
    copier copying(path, to, options);
    if (status ok = copying.prepare(from.descriptor(), pool_end(*now)); !ok.ok()) return ok;
    if (status ok = copying.finish_from_helper(); !ok.ok()) return ok;
    auto made = copying.publish(true, check);
    if (made) copying.keep();
    return made;
} catch (const std::bad_alloc&) {
    return out_of_memory(path);
}

} // namespace hf
