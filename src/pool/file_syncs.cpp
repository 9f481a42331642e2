// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making a file durable, and what follows when the disk fails.
#include <base/page.hpp>
#include <pool/os_file.hpp>
#include <pool/restarted.hpp>

#include <cerrno>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace hf {

/// The kernel takes pages for written that a sync could not write: a process that opens the file
/// next would read them, and its next sync would vouch for them. It should read what the disk has.
/// Mapped pages stay until they are unmapped.
void os_file::forget_unwritten() const noexcept {
    (void)::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

template <class Call> status os_file::synced(const char* name, Call&& call) const {
    const std::scoped_lock held{sync_turn_};
    if (sync_error_ == 0 && restarted(call) != 0) {
        sync_error_ = errno;
        forget_unwritten();
    }
    return sync_error_ == 0 ? status{} : system_error(name, sync_error_);
}

status os_file::sync() const {
    return on_tmpfs_ ? status{} : synced("fsync", [&] { return ::fsync(fd_); });
}

status os_file::sync_data() const {
    return synced("fdatasync", [&] { return ::fdatasync(fd_); });
}

status os_file::sync_mapped(void* from, std::size_t bytes) const {
    const std::uintptr_t page = page_of(from);
    const std::size_t whole = reinterpret_cast<std::uintptr_t>(from) - page + bytes;
    return synced("msync", [&] { return ::msync(reinterpret_cast<void*>(page), whole, MS_SYNC); });
}

} // namespace hf
