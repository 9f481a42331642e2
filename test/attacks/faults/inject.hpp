// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults at the library's border: every libc call that asks the kernel for something is linked
// through a wrapper (CMakeLists.txt names them, imports.py proves that none is missing), and the
// heap is this program's own. Calls and allocations are numbered from arm() on; the one that a plan
// names fails, or the process is killed right before or after it.
//
// (1) Nothing here allocates. (2) Before arm() and after disarm() everything goes straight through.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace hf::faults {

enum class call : std::uint8_t {
    open,
    close,
    fstat,
    lstat,
    stat,
    fstatfs,
    fcntl,
    pread,
    pwrite,
    read,
    fallocate,
    ftruncate,
    fsync,
    mmap,
    munmap,
    msync,
    madvise,
    getrandom,
    getrlimit,
    unlink,
    linkat,
    link,
    renameat2,
    statx,
    pthread_create,
    sigaltstack,
    timer_create,
    timer_settime
};
const char* name(call which) noexcept;

/// In place of an error number: the call succeeds, and transfers half of what was asked.
inline constexpr int short_transfer = -1;
/// The call succeeds, and transfers nothing, time and again: a loop around it must not hang.
inline constexpr int no_transfer = -2;
/// The errors with which the call may plausibly fail.
std::span<const int> errors_of(call which) noexcept;

enum class action : std::uint8_t {
    none,
    fail_call,
    fail_allocation,
    kill_before_call,
    kill_after_call
};

struct plan {
    action what = action::none;
    std::uint64_t at = 0;        // the at-th call, or allocation; counted from 1
    int error = 0;               // errno, or short_transfer
    bool lasting = false;        // every later call of the same name, or allocation, fails as well
    std::uint64_t killed_at = 0; // the process is killed before this call, too; 0: it is not
};

inline constexpr std::size_t order_max = 4096;

/// The calls and allocations since arm(), in memory that parent and child share.
struct tally {
    std::uint64_t calls = 0;
    std::uint64_t allocations = 0;
    bool injected = false;
    call injected_into = call::open;
    std::array<call, order_max> order{}; // of the first calls
};

/// 'at_injection' is called once, right before the first fault.
void arm(const plan& given, tally& into, void (*at_injection)()) noexcept;
void disarm() noexcept;

/// Lets everything on every thread through while it lives, uncounted.
class pause {
public:
    pause() noexcept;
    ~pause();
    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;
};

/// The medium that the files of this process pretend to be on. They are on tmpfs, where fsync and
/// msync are not called. 'named': a disk that has no files without a name; 'linked': one that also
/// has no renaming that replaces nothing.
enum class medium : std::uint8_t { tmpfs, disk, dax, named, linked };
void pretend(medium given) noexcept;

} // namespace hf::faults
