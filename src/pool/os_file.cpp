// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <pool/file_checks.hpp>
#include <pool/file_limits.hpp>
#include <pool/holders.hpp>
#include <pool/os_file.hpp>
#include <pool/restarted.hpp>
#include <trace/trace.hpp>

#include <holdfast/author/persist.hpp>

#include <fmt/format.h>
#include <linux/magic.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace hf {
namespace {

constexpr unsigned new_names_max = 100;
constexpr unsigned replaced_max = 20; // while one open waits
constexpr std::string_view new_prefix = ".holdfast-new.";

/// Ends with a slash.
std::string directory_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

// Files this process has open as pools. fork() empties the table of the child; the process is part
// of the entry for a child that was made otherwise: it inherits the table, but not the right to say
// "already open here"; there the lock speaks.
struct open_here {
    dev_t device;
    ino_t inode;
    pid_t process;
    int descriptor;
    std::uint64_t base = 0, bytes = 0; // where it is mapped
    std::string path = {};             // once it is
    bool same(const open_here& other) const noexcept {
        return device == other.device && inode == other.inode && process == other.process;
    }
};
// Held while a file is opened and registered: fork() waits, so its child finds every descriptor.
std::mutex table_lock;
std::vector<open_here>& table() { // never destroyed: pools may outlive static destructors
    static auto* entries = new std::vector<open_here>;
    return *entries;
}
/// Requires, here and below: table_lock held.
bool enter(const open_here& entry) {
    HF_ASSERT_SLOW(held_here(table_lock));
    HF_ASSERT_SLOW(entry.descriptor >= 0);
    if (std::ranges::any_of(table(), [&](const open_here& e) { return e.same(entry); }))
        return false;
    table().push_back(entry);
    return true;
}
bool leave(const open_here& entry) noexcept {
    HF_ASSERT_SLOW(held_here(table_lock));
    return std::erase_if(table(), [&](const open_here& e) { return e.same(entry); }) > 0;
}

errc code_of(int error) noexcept {
    switch (error) {
    case ENOENT:
    case ENOTDIR: return errc::not_found;
    case EEXIST: return errc::exists;
    case EACCES:
    case EPERM:
    case EROFS: return errc::permission;
    case EISDIR:
    case ELOOP: return errc::not_a_pool;
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return errc::pool_full;
    default: return errc::io_error;
    }
}

const char* kind_of(mode_t mode) noexcept {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISLNK(mode))
        return "a symbolic link, which is not followed by default: open what it leads to, or set "
               "open_options::expert.follow_symlinks";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

// The locked bytes, far behind the end of every file. Those below 'beside_at' mean the file, whole:
// a writer that lets others read locks only these. A reader beside it has 'beside_at' as long as it
// is there, and a byte for each number that it announces.
constexpr off_t beside_at = off_t{1} << 62;
constexpr off_t announced_at = beside_at + 2;

struct flock range(short type, off_t from, off_t count) noexcept {
    struct flock lock{};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = from;
    lock.l_len = count; // 0: as far as numbers go
    return lock;
}

struct flock lock_for(held how) noexcept {
    switch (how) {
    case held::to_write: return range(F_WRLCK, 0, 0);
    case held::to_read: return range(F_RDLCK, 0, 0);
    case held::to_write_beside_readers: return range(F_WRLCK, 0, beside_at);
    case held::to_read_beside: break;
    }
    return range(F_RDLCK, beside_at, 1);
}

status lock_file(const std::string& path, int fd, held how) {
    struct flock lock = lock_for(how);
    struct flock rest = range(F_UNLCK, beside_at, 0); // of a file that was made under another name
    if (how == held::to_write_beside_readers) (void)fcntl(fd, F_OFD_SETLK, &rest);
    if (restarted([&] { return fcntl(fd, F_OFD_SETLK, &lock); }) == 0) return {};
    if (errno != EAGAIN && errno != EACCES)
        return refusal(path, errc::io_error, fmt::format("cannot lock: {}", std::strerror(errno)));
    // The kernel names the holder only when it used a classic record lock.
    struct flock holder = lock;
    if (fcntl(fd, F_OFD_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
        return refusal(path, errc::in_use, fmt::format("open in process {}", holder.l_pid));
    return refusal(path, errc::in_use, "open in " + holder_of_lock(fd));
}

/// 0 if a file made under 'new_prefix' is this process's now, locked and named; else the reason.
int make_ours(int fd) noexcept {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (restarted([&] { return ::fcntl(fd, F_OFD_SETLK, &lock); }) != 0 &&
        (errno == EAGAIN || errno == EACCES))
        return errno;
    struct stat about{};
    return ::fstat(fd, &about) != 0 || about.st_nlink != 0 ? 0 : EAGAIN; // adopt() says what failed
}

/// Removes what creations that were killed have left in a directory: nobody has it locked.
void remove_abandoned(const std::string& directory) {
    const auto close = [](DIR* d) { ::closedir(d); };
    const std::unique_ptr<DIR, decltype(close)> all(::opendir(directory.c_str()));
    if (all == nullptr) return;
    while (const dirent* entry = ::readdir(all.get())) {
        if (!std::string_view(entry->d_name).starts_with(new_prefix)) continue;
        const std::string path = directory + entry->d_name;
        struct stat about{};
        if (::lstat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
        const int fd = restarted([&] {
            return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        });
        if (fd < 0) continue;
        if (make_ours(fd) == 0) ::unlink(path.c_str());
        ::close(fd);
    }
}

} // namespace

os_file::os_file(os_file&& other) noexcept { take(other); }

void os_file::take(os_file& other) noexcept {
    HF_ASSERT(fd_ < 0);
    HF_ASSERT(image_ == nullptr);
    HF_ASSERT(!in_table_);
    fd_ = std::exchange(other.fd_, -1);
    image_ = std::exchange(other.image_, nullptr);
    in_table_ = std::exchange(other.in_table_, false);
    on_tmpfs_ = other.on_tmpfs_;
    sync_error_ = other.sync_error_;
    device_ = other.device_;
    inode_ = other.inode_;
    path_ = std::move(other.path_);
    full_path_ = std::move(other.full_path_);
    own_name_ = std::move(other.own_name_);
}

os_file::~os_file() {
    if (fd_ < 0) return;
    const std::scoped_lock held{table_lock};
    // In a child of fork() the number may be another file's by now.
    if (in_table_ && !leave({device_, inode_, ::getpid(), fd_})) return;
    if (sync_error_ != 0) forget_unwritten(); // and by now unmapped
    // Closing is not enough: a child that was made a moment ago has the descriptor, too.
    struct flock lock{};
    lock.l_type = F_UNLCK;
    lock.l_whence = SEEK_SET;
    if (in_table_) (void)::fcntl(fd_, F_OFD_SETLK, &lock);
    ::close(fd_);
}

void os_file::note_place(std::uint64_t base, std::uint64_t bytes) const {
    if (!in_table_) return;
    std::string path = full_path_;
    const std::scoped_lock held{table_lock};
    for (open_here& entry : table()) {
        if (!entry.same({device_, inode_, ::getpid(), fd_})) continue;
        entry.base = base;
        entry.bytes = bytes;
        entry.path = std::move(path);
        return;
    }
}

std::string os_file::pool_at(std::uint64_t base, std::uint64_t bytes) {
    const std::scoped_lock held{table_lock};
    for (const open_here& entry : table())
        if (entry.process == ::getpid() && entry.base < base + bytes &&
            base < entry.base + entry.bytes)
            return entry.path;
    return {};
}

void os_file::hold_table() noexcept { table_lock.lock(); }
void os_file::release_table() noexcept { table_lock.unlock(); }
void os_file::close_inherited() noexcept {
    for (const open_here& entry : table()) ::close(entry.descriptor);
    table().clear();
}

status os_file::system_error(const char* call, int error) const {
    return refusal(path_, code_of(error),
                   fmt::format("{}: {}{}", call, std::strerror(error), way_out_of(error)));
}

status os_file::cannot_allocate(std::uint64_t bytes, int error) const {
    return system_error(fmt::format("allocate {} bytes", bytes).c_str(), error);
}

status os_file::adopt(const std::string& path, int fd, held how) {
    HF_ASSERT_SLOW(fd_ < 0);
    HF_ASSERT_SLOW(fd >= 0);
    HF_ASSERT_SLOW(!in_table_);
    fd_ = fd;
    path_ = path;
    std::error_code nowhere;
    full_path_ = std::filesystem::absolute(path, nowhere).string();
    // A process without standard streams would use it as one: output would go there.
    if (fd <= STDERR_FILENO) {
        fd_ = restarted([&] { return ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); });
        const int failed = errno;
        ::close(fd);
        if (fd_ < 0) return system_error("fcntl", failed);
        fd = fd_;
    }
    struct stat about{};
    if (::fstat(fd, &about) != 0) return system_error("fstat", errno);
    if (!S_ISREG(about.st_mode))
        return refusal(path, errc::not_a_pool, fmt::format("this is {}", kind_of(about.st_mode)));
    device_ = about.st_dev;
    inode_ = about.st_ino;
    if (!enter({device_, inode_, ::getpid(), fd_}))
        return refusal(path, errc::in_use, "already open in this process");
    in_table_ = true;
    struct statfs system{};
    if (restarted([&] { return ::fstatfs(fd, &system); }) != 0 && errno != ENOSYS)
        return system_error("fstatfs", errno);
    on_tmpfs_ = system.f_type == TMPFS_MAGIC;
    return lock_file(path, fd, how);
}

bool os_file::was_replaced(bool follow_symlinks) const noexcept {
    struct stat mine{}, named{};
    if (::fstat(fd_, &mine) != 0) return false;
    const auto look = follow_symlinks ? ::stat : ::lstat;
    return look(path_.c_str(), &named) == 0 &&
           (named.st_dev != mine.st_dev || named.st_ino != mine.st_ino);
}

result<os_file> os_file::open_existing(const std::string& path, bool follow_symlinks, held how) {
    for (unsigned attempt = 0;; ++attempt) {
        auto file = open_named(path, follow_symlinks, how);
        if (!file || attempt == replaced_max || !file->was_replaced(follow_symlinks)) return file;
    }
}

result<os_file> os_file::open_named(const std::string& path, bool follow_symlinks, held how) {
    // Looked at before it is opened: opening a device can have effects of its own.
    struct stat about{};
    os_file file;
    file.path_ = path;
    if ((follow_symlinks ? ::stat(path.c_str(), &about) : ::lstat(path.c_str(), &about)) != 0)
        return file.system_error("stat", errno);
    if (!S_ISREG(about.st_mode))
        return refusal(path, errc::not_a_pool, fmt::format("this is {}", kind_of(about.st_mode)));
    // Non-blocking: the name may have become a FIFO in between.
    const bool reads = how == held::to_read || how == held::to_read_beside;
    const int flags = (reads ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                      (follow_symlinks ? 0 : O_NOFOLLOW);
    const std::scoped_lock held{table_lock};
    const int fd = restarted([&] { return ::open(path.c_str(), flags); });
    if (fd < 0 && errno == EACCES)
        return refusal(path, errc::permission, whose_file(about.st_uid, about.st_mode));
    if (fd < 0) return file.system_error("open", errno);
    if (status locked = file.adopt(path, fd, how); !locked.ok()) return locked;
    return file;
}

result<os_file> os_file::create_new(const std::string& path, held how) {
    os_file file;
    file.path_ = path;
    struct stat about{};
    if (::lstat(path.c_str(), &about) == 0) return file.system_error("create", EEXIST);
    if (errno != ENOENT) return file.system_error("stat", errno);
    status opened;
    try {
        opened = file.open_new(how);
    } catch (const std::bad_alloc&) {
        opened = out_of_memory(path);
    }
    if (opened.ok()) return file;
    file.unlink();
    return opened;
}

status os_file::open_new(held how) {
    const std::string directory = directory_of(path_);
    // A file without a name gets one through /proc.
    struct stat about{};
    const bool linkable = ::lstat("/proc/self/fd", &about) == 0;
    const std::scoped_lock held{table_lock};
    int fd = -1, failed = EOPNOTSUPP, taken = 0;
    if (linkable) {
        fd = restarted(
            [&] { return ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
        failed = errno;
    }
    const bool unknown = failed == EOPNOTSUPP || failed == EISDIR || failed == EINVAL;
    if (fd < 0 && unknown) remove_abandoned(directory);
    for (unsigned n = 0; fd < 0 && unknown && n < new_names_max; ++n) {
        own_name_ = fmt::format("{}{}{}.{}", directory, new_prefix, ::getpid(), n);
        fd = restarted([&] {
            return ::open(own_name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          0600);
        });
        failed = errno;
        taken = fd >= 0 ? make_ours(fd) : 0; // for abandoned, before it was locked
        if (taken != 0) {
            unlink();
            ::close(std::exchange(fd, -1));
        }
        if (fd < 0) own_name_.clear();
        if (fd < 0 && taken == 0 && failed != EEXIST) break;
    }
    if (taken != 0) return system_error("lock", taken);
    if (fd < 0) return system_error("create", failed);
    return adopt(path_, fd, how);
}

bool os_file::announce(std::uint64_t number) const noexcept {
    if (number > announced_max) return false;
    struct flock lock = range(F_RDLCK, announced_at + static_cast<off_t>(number), 1);
    return restarted([&] { return ::fcntl(fd_, F_OFD_SETLK, &lock); }) == 0;
}

void os_file::withdraw(std::uint64_t number) const noexcept {
    struct flock lock = range(F_UNLCK, announced_at + static_cast<off_t>(number), 1);
    (void)restarted([&] { return ::fcntl(fd_, F_OFD_SETLK, &lock); });
}

std::uint64_t os_file::oldest_announced() const noexcept {
    std::uint64_t oldest = ~std::uint64_t{0};
    if (in_memory()) return oldest;
    // The kernel names any one lock of those there are: the next question is for lower ones.
    for (off_t count = 0; oldest != 0; count = static_cast<off_t>(oldest)) {
        struct flock found = range(F_WRLCK, announced_at, count);
        if (restarted([&] { return ::fcntl(fd_, F_OFD_GETLK, &found); }) != 0) return 0;
        if (found.l_type == F_UNLCK) break;
        oldest = static_cast<std::uint64_t>(std::max(found.l_start, announced_at) - announced_at);
    }
    return oldest;
}

bool os_file::has_writer() const noexcept {
    struct flock found = range(F_RDLCK, 0, beside_at);
    return ::fcntl(fd_, F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

status os_file::publish() {
    HF_ASSERT_SLOW(fd_ >= 0);
    HF_ASSERT_SLOW(own_name_ != path_); // once
    std::string published = path_;      // without memory it has no name yet
    int failed = 0;
    if (own_name_.empty()) {
        const std::string self = fmt::format("/proc/self/fd/{}", fd_);
        if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0)
            return system_error("link", errno);
    } else if (::renameat2(AT_FDCWD, own_name_.c_str(), AT_FDCWD, path_.c_str(),
                           RENAME_NOREPLACE) != 0) {
        failed = errno;
        const bool unknown = failed == EINVAL || failed == ENOSYS || failed == EOPNOTSUPP;
        if (unknown && ::link(own_name_.c_str(), path_.c_str()) == 0) {
            ::unlink(own_name_.c_str());
            failed = 0;
        } else if (unknown) failed = errno;
    }
    if (failed != 0) return system_error("link", failed);
    own_name_ = std::move(published);
    return {};
}

result<os_file> os_file::create_beside(const std::string& path) {
    os_file file;
    file.path_ = path;
    remove_abandoned(directory_of(path)); // by a replacement that was killed between its two steps
    if (status opened = file.open_new(held::to_write); !opened.ok()) {
        file.unlink();
        return opened;
    }
    return file;
}

status os_file::replace() {
    HF_ASSERT_SLOW(fd_ >= 0);
    HF_ASSERT_SLOW(own_name_ != path_); // once
    std::string replaced = path_;
    const std::string self = fmt::format("/proc/self/fd/{}", fd_);
    for (unsigned n = 0; own_name_.empty() && n < new_names_max; ++n) {
        std::string beside =
            fmt::format("{}{}{}.{}", directory_of(path_), new_prefix, ::getpid(), n);
        if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, beside.c_str(), AT_SYMLINK_FOLLOW) == 0)
            own_name_ = std::move(beside);
        else if (errno != EEXIST) return system_error("link", errno);
    }
    if (own_name_.empty()) return system_error("link", EEXIST);
    if (::renameat2(AT_FDCWD, own_name_.c_str(), AT_FDCWD, path_.c_str(), 0) != 0)
        return system_error("rename", errno);
    own_name_ = std::move(replaced);
    return {};
}

void os_file::unlink() const noexcept {
    if (!own_name_.empty()) ::unlink(own_name_.c_str());
}

file_identity os_file::identity() const noexcept {
    if (image_ != nullptr) return {};
    struct statx about{};
    const bool told = ::statx(fd_, "", AT_EMPTY_PATH, STATX_BTIME, &about) == 0 &&
                      (about.stx_mask & STATX_BTIME) != 0;
    return {inode_, told ? static_cast<std::uint64_t>(about.stx_btime.tv_sec) * 1'000'000'000 +
                               about.stx_btime.tv_nsec
                         : 0};
}

result<std::uint64_t> os_file::size_bytes() const {
    if (image_ != nullptr) return image_->size_bytes;
    struct stat about{};
    if (::fstat(fd_, &about) != 0) return system_error("fstat", errno);
    return static_cast<std::uint64_t>(about.st_size);
}

bool os_file::has_holes(std::uint64_t bytes) const noexcept {
    if (image_ != nullptr) return false;
    struct stat about{};
    return ::fstat(fd_, &about) != 0 || static_cast<std::uint64_t>(about.st_blocks) * 512 < bytes;
}

status os_file::read_at(std::uint64_t offset, void* to, std::size_t count) const {
    HF_ASSERT_SLOW(fd_ >= 0 || in_memory());
    std::size_t done = 0;
    if (image_ != nullptr && offset < image_->size_bytes) {
        done = std::min<std::uint64_t>(count, image_->size_bytes - offset);
        std::memcpy(to, image_->base + offset, done);
    }
    while (image_ == nullptr && done < count) {
        const auto place = static_cast<off_t>(offset + done);
        const ssize_t n = restarted(
            [&] { return ::pread(fd_, static_cast<char*>(to) + done, count - done, place); });
        if (n < 0) return system_error("read", errno);
        if (n == 0) break;
        done += static_cast<std::size_t>(n);
    }
    std::memset(static_cast<char*>(to) + done, 0, count - done);
    return {};
}

status os_file::write_at(std::uint64_t offset, const void* from, std::size_t count) const {
    HF_ASSERT_SLOW(fd_ >= 0 || in_memory());
    if (image_ != nullptr) {
        const std::uint64_t end = offset + count;
        if (end > image_->capacity_bytes) return system_error("write", ENOSPC);
        std::memcpy(image_->base + offset, from, count);
        trace::announce(image_written, image_->base + offset, count);
        image_->size_bytes = std::max(image_->size_bytes, end);
        return {};
    }
    if (count != 0 && offset + count > file_bytes_allowed()) return system_error("write", EFBIG);
    for (std::size_t done = 0; done < count;) {
        const auto place = static_cast<off_t>(offset + done);
        const ssize_t n = restarted([&] {
            return ::pwrite(fd_, static_cast<const char*>(from) + done, count - done, place);
        });
        if (n <= 0) return system_error("write", n < 0 ? errno : ENOSPC);
        done += static_cast<std::size_t>(n);
    }
    return {};
}

status os_file::allocate(std::uint64_t offset, std::uint64_t bytes) const {
    HF_ASSERT_SLOW((fd_ >= 0 || in_memory()));
    HF_ASSERT_SLOW(bytes != 0);
    if (image_ != nullptr) {
        const std::uint64_t end = offset + bytes, size = image_->size_bytes;
        if (end > image_->capacity_bytes) return cannot_allocate(bytes, ENOSPC);
        if (end > size) { // a file system's zeros are never lost
            std::memset(image_->base + size, 0, end - size);
            trace::announce(trace::flush, image_->base + size, end - size);
            trace::announce(trace::fence, nullptr, 0);
        }
        image_->size_bytes = std::max(size, end);
        return {};
    }
    if (offset + bytes > file_bytes_allowed()) {
        const auto present = size_bytes(); // space within it does not lengthen it
        if (!present) return present.error();
        if (offset + bytes > *present) return cannot_allocate(bytes, EFBIG);
    }
    const auto start = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
    if (restarted([&] { return ::fallocate(fd_, 0, start, length); }) == 0) return {};
    if (errno != EOPNOTSUPP && errno != ENOSYS) return cannot_allocate(bytes, errno);
    // A file system without fallocate: lengthens the file by written zeros. What is in it already
    // is left alone, holes included; such file systems rarely have any.
    const result<std::uint64_t> present = size_bytes();
    if (!present) return present.error();
    const std::vector<char> zeros(1 << 20);
    for (std::uint64_t at = std::max(offset, *present), end = offset + bytes; at < end;) {
        const std::uint64_t n = std::min<std::uint64_t>(zeros.size(), end - at);
        if (status written = write_at(at, zeros.data(), n); !written.ok()) return written;
        at += n;
    }
    return {};
}

int os_file::punch(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    if (image_ != nullptr) { // from here on stores there are lost
        HF_ASSERT_SLOW(offset + bytes <= image_->size_bytes);
        std::memset(image_->base + offset, 0, bytes);
        trace::announce(image_written, image_->base + offset, bytes);
        return 0;
    }
    const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    const auto start = static_cast<off_t>(offset), length = static_cast<off_t>(bytes);
    return restarted([&] { return ::fallocate(fd_, how, start, length); }) == 0 ? 0 : errno;
}

std::optional<std::uint64_t> os_file::disk_free_bytes() const noexcept {
    struct statfs system{};
    if (image_ != nullptr || restarted([&] { return ::fstatfs(fd_, &system); }) != 0) return {};
    return system.f_bfree * static_cast<std::uint64_t>(system.f_bsize);
}

int os_file::truncate(std::uint64_t bytes) const noexcept {
    if (image_ != nullptr) {
        HF_ASSERT_SLOW(bytes <= image_->capacity_bytes);
        image_->size_bytes = bytes;
        return 0;
    }
    return restarted([&] { return ::ftruncate(fd_, static_cast<off_t>(bytes)); }) == 0 ? 0 : errno;
}

status os_file::sync_directory() const {
    if (on_tmpfs_) return {};
    std::error_code unknown;
    const auto real = std::filesystem::canonical(path_, unknown); // not that of a link to it
    const std::string directory = directory_of(unknown ? path_ : real.string());
    const int fd =
        restarted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    // A directory that may be searched and not read cannot be opened.
    if (fd < 0 && errno == EACCES && restarted([&] { return ::syncfs(fd_); }) == 0) return {};
    if (fd < 0) return system_error("open directory", errno);
    const int failed = restarted([&] { return ::fsync(fd); }) == 0 ? 0 : errno;
    ::close(fd);
    // Some file systems cannot sync a directory; they have nothing to sync.
    if (failed == 0 || failed == EINVAL) return {};
    return system_error("fsync directory", failed);
}

} // namespace hf
