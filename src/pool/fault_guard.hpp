// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Faults that a pool's file can cause. Code that may meet one runs guarded, and gets a sentence
// instead of a signal. A thread gets a message before the process dies of what it has touched: a
// file that was cut, a pool that was closed, or null in place of a block.
//
// (1) Handlers are installed only while somebody needs them, and pass other signals on to the
//     handler that was there before. A handler that another installed on top of ours is never
//     removed. That of SIGSEGV stays when a pool was closed: pointers into it may be left.
// (2) A guarded run that is stopped leaves its frames without their destructors: what they own must
//     belong to the caller, and what they hold must be of no use to anybody afterwards.
// (3) Out of time, a run is stopped only where it holds nothing: in expired(), which the runtime
//     calls from its entries. If it makes no such call for another while of its own computing time,
//     it is stopped in the code that spins without one.
#pragma once

#include <holdfast/result.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hf::fault_guard {

/// The mapping of a pool's file. While one lives, a SIGBUS in it is explained on stderr before the
/// process dies of it, or before the handler that was there first has its turn. The same handler
/// explains a SIGSEGV that note_closed or note_no_block has foreseen.
class watched_file {
public:
    /// Requires: the arguments outlive the object.
    watched_file(const std::byte* base, const std::atomic<std::uint64_t>& size_bytes,
                 int descriptor, const char* path);
    ~watched_file();
    watched_file(const watched_file&) = delete;
    watched_file& operator=(const watched_file&) = delete;

    const std::byte* base;
    const std::atomic<std::uint64_t>* size_bytes;
    int descriptor;
    const char* path;
};

enum class against : std::uint8_t {
    cut_files, // SIGBUS in watched files
    everything // SIGSEGV, SIGBUS, SIGFPE, SIGILL, abort() and fatal() on this thread
};

/// How a guarded run ended.
struct ending {
    bool stopped = false;
    errc code = errc::ok; // truncated: the file was cut
    std::string why;      // "SIGSEGV at 0x8"
};

/// Runs 'body' on this thread.
///
/// Threads: any number at once, each guarding itself.
ending run(against what, const std::function<void()>& body);

/// While one lives, this thread's guarded run is short of time (3). Without such a run it does
/// nothing.
class clock {
public:
    /// 'ms_max': of this thread's computing time without progress; 0: no bound. Both are called in
    /// a signal handler: 'progressed' says whether there was any since it was last called, and
    /// 'at_expiry', when the time is over, makes the runtime's entries call expired().
    clock(std::uint32_t ms_max, bool (*progressed)(void* context) noexcept,
          void (*at_expiry)(void* context) noexcept, void* context);
    ~clock();
    clock(const clock&) = delete;
    clock& operator=(const clock&) = delete;
};

/// Stops this thread's guarded run because its time is over. Requires: one that has expired.
[[noreturn]] void expired() noexcept;
/// Sets the code of this thread's next fatal() that ends a guarded run; the default is corrupt.
void fatal_means(errc code) noexcept;

/// The range is about to be unmapped, because the pool was closed: an access there is explained
/// from here on.
void note_closed(const std::byte* base, std::uint64_t bytes, const char* path) noexcept;

/// A block that a section asked for, and did not get.
struct no_block {
    std::uint64_t bytes = 0;
    const char* path = nullptr;     // of the pool
    const char* function = nullptr; // of the section, as the linker names it
    const char* where = nullptr;
    /// Whether the section is open still, on this thread.
    bool (*still)(const no_block& of) noexcept = nullptr;
    const void* section = nullptr;
    std::uint64_t epoch = 0;
};
/// An access of this thread to the first page, or to where such a block at null would be, is
/// explained while the section is open. The last call counts.
void note_no_block(const no_block& found) noexcept;

// Around fork(), in this order (pool/forks.hpp).
void hold_table() noexcept;
void release_table() noexcept;
/// In the child: a thread that touches the parent's files, which are not mapped, gets a message.
/// Requires: the table is held.
void leave_watched_files() noexcept;

} // namespace hf::fault_guard
