// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The system calls under a pool file. An os_file is open, a regular file, and locked: against other
// processes by an open-file-description lock, against this one by a table of (device, inode).
// Every call is restarted when a signal interrupts it.
#pragma once

#include <base/assert.hpp>
#include <trace/trace.hpp>

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace hf {

/// Memory in place of a file, mapped at the pool's canonical address for good: the crash checker
/// opens it hundreds of thousands of times a second.
struct memory_image {
    std::byte* base;
    std::uint64_t size_bytes;     // of the "file"
    std::uint64_t capacity_bytes; // of the memory; beyond it the "disk" is full
    bool power_failed = true;     // false: a process that had it open was only killed
    bool sealed = false; // there is room for a seal behind the largest pool, and it is written
};

/// A range of an image was written as to a file, and synced at once: the system calls are not
/// failed.
inline constexpr trace::event image_written{"image_written"};

/// Which file this is: copies differ. Kept by renaming, by a restart of the machine, and by
/// snapshots of a whole file system.
struct file_identity {
    std::uint64_t inode = 0;    // 0: not known
    std::uint64_t birth_ns = 0; // 0: unknown to the file system
    bool may_be(const file_identity& other) const noexcept {
        if (inode == 0 || other.inode == 0) return true;
        const bool births = birth_ns != 0 && other.birth_ns != 0;
        return inode == other.inode && (!births || birth_ns == other.birth_ns);
    }
};

/// A process's hold on a file: alone, to write or (any number) to read; to write beside readers; to
/// read beside readers and a writer.
enum class held : std::uint8_t { to_write, to_read, to_write_beside_readers, to_read_beside };

class os_file {
public:
    os_file() = default;
    /// Requires: 'image' outlives the file, and is used by one at a time.
    explicit os_file(memory_image& image) noexcept : image_(&image), on_tmpfs_(true) {}
    os_file(os_file&&) noexcept;
    os_file& operator=(os_file&&) = delete;
    ~os_file(); // unlocks and closes
    /// Takes another's file over. Requires: this one has none.
    void take(os_file& other) noexcept;

    /// Opens and locks an existing file. Never blocks; follows a symlink at the end only if asked
    /// to. to_read, to_read_beside: it cannot be written.
    ///
    /// Errors:   not_found, not_a_pool (directory, FIFO, device, symlink), permission, in_use.
    static result<os_file> open_existing(const std::string& path, bool follow_symlinks,
                                         held how = held::to_write);
    /// Creates and locks a new, empty file, readable and writable by its owner only. It has no name
    /// before publish(), so nothing of it outlives a crash; if the file system has no files without
    /// a name, it has one like ".holdfast-new.…".
    ///
    /// Errors:   exists, permission, not_found (no such directory).
    static result<os_file> create_new(const std::string& path, held how = held::to_write);
    /// Gives a new file its name, unless somebody else has taken that.
    ///
    /// Errors:   exists, permission.
    status publish();
    /// The same as create_new(), beside a file that has the name: replace() gives it to this one.
    static result<os_file> create_beside(const std::string& path);
    /// Puts a new file in the place of the one that has its name. A process that waits for the old
    /// one's lock gets this one. A crash keeps the one or the other, and may leave a name that
    /// nothing opens (docs/format/pool.md).
    ///
    /// Requires: create_beside(); the caller holds the lock of the one that goes.
    /// Errors:   not_found (the directory), permission, io_error.
    status replace();

    // Announcements: numbers that readers hold, and the writer beside them asks for. Each is a
    // shared lock on a byte far behind every file, which needs no right to write and which the
    // kernel drops with the process.
    /// Numbers above have no byte.
    static constexpr std::uint64_t announced_max = std::uint64_t{1} << 61;
    /// False when the system has no memory for it, or the number no byte. Requires: to_read_beside;
    /// it is not announced.
    bool announce(std::uint64_t number) const noexcept;
    void withdraw(std::uint64_t number) const noexcept;
    /// The least number that another process announces; all ones: none does.
    std::uint64_t oldest_announced() const noexcept;
    /// Whether a process has the file to write. Requires: to_read_beside.
    bool has_writer() const noexcept;

    int descriptor() const noexcept { return fd_; }
    const std::string& path() const noexcept { return path_; }
    /// The same from the root of all directories: where the process was when it opened the file.
    const std::string& full_path() const noexcept { return full_path_; }
    bool in_memory() const noexcept { return image_ != nullptr; }
    /// Requires, as what follows: in_memory().
    std::uint64_t capacity_bytes() const noexcept { return image().capacity_bytes; }
    bool power_failed() const noexcept { return image().power_failed; }
    bool sealed() const noexcept { return image().sealed; }
    std::byte* image_base() const noexcept { return image().base; }
    bool on_tmpfs() const noexcept { return on_tmpfs_; }
    result<std::uint64_t> size_bytes() const;
    /// True if the file system has not allocated every byte of [0, bytes), or does not report it.
    bool has_holes(std::uint64_t bytes) const noexcept;
    /// Reads up to 'count' bytes; what the file does not have of them is zero.
    status read_at(std::uint64_t offset, void* to, std::size_t count) const;
    status write_at(std::uint64_t offset, const void* from, std::size_t count) const;
    /// Allocates [offset, offset + bytes) for good and lengthens the file to its end. Bytes that
    /// were not in the file read as zeros.
    ///
    /// Errors:   pool_full (the disk, a quota, ulimit -f), io_error; the file may have become
    ///           longer.
    status allocate(std::uint64_t offset, std::uint64_t bytes) const;
    /// Gives the space of a part of the file back; it reads as zeros. 0, or the error.
    int punch(std::uint64_t offset, std::uint64_t bytes) const noexcept;
    /// Free bytes of the file system, reserves included; nothing if it does not report them, and in
    /// memory.
    std::optional<std::uint64_t> disk_free_bytes() const noexcept;
    /// 0, or the error.
    int truncate(std::uint64_t bytes) const noexcept;
    // The kernel reports a write-back error once for an open file, to whichever call comes first,
    // and may have dropped what it could not write. So these calls take turns; after a failure all
    // of them fail, on every thread.
    /// Makes data and size durable; nothing to do on tmpfs.
    status sync() const;
    /// Makes the data durable, and of the size what reading it needs.
    status sync_data() const;
    /// The same by what is mapped there from the file.
    status sync_mapped(void* from, std::size_t bytes) const;
    /// Makes the directory entry durable; nothing to do on tmpfs.
    status sync_directory() const;
    /// Gives this file the owner, the group and the permissions of another one. If the process may
    /// not, returns false: then the file has the permitted part, and no other group gets
    /// permissions than the original's.
    bool take_owner_of(int descriptor) const noexcept;
    /// The same, and a line in the log where it is false.
    void take_owner_or_say(int descriptor) const noexcept;
    /// Removes any name of a new file. For a creation that failed, while the lock is held.
    void unlink() const noexcept;
    file_identity identity() const noexcept;
    /// Says where the file is mapped, and may grow to. Throws std::bad_alloc.
    void note_place(std::uint64_t base, std::uint64_t bytes) const;
    /// The path of a file of this process that is mapped there, or in a part of it; empty: none is.
    static std::string pool_at(std::uint64_t base, std::uint64_t bytes);
    /// What has happened to its name since it was opened, or published: for people. Empty: the name
    /// leads to it, or this process may not look.
    std::string misplaced() const;

    // Around fork(), in this order (forks.hpp).
    static void hold_table() noexcept;
    static void release_table() noexcept;
    /// In the child: closes the parent's open descriptors. Requires: the table is held.
    static void close_inherited() noexcept;

private:
    const memory_image& image() const noexcept {
        HF_ASSERT_SLOW(in_memory());
        return *image_;
    }
    status adopt(const std::string& path, int fd, held how);
    status open_new(held how);
    static result<os_file> open_named(const std::string& path, bool follow_symlinks, held how);
    /// Whether another file now has the name by which this one was opened: the next open does not
    /// find what is stored here.
    bool was_replaced(bool follow_symlinks) const noexcept;
    status system_error(const char* call, int error) const;
    status cannot_allocate(std::uint64_t bytes, int error) const;
    template <class Call> status synced(const char* name, Call&& call) const;
    void forget_unwritten() const noexcept;

    int fd_ = -1;
    mutable std::mutex sync_turn_;
    mutable int sync_error_ = 0; // of the one that failed
    memory_image* image_ = nullptr;
    bool on_tmpfs_ = false, in_table_ = false;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    std::string path_;
    std::string full_path_; // the process may go elsewhere
    std::string own_name_;  // of a new file
};

} // namespace hf
