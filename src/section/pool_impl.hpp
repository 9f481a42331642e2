// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An open pool: its file, its allocator, its lanes and the engines it was opened with.
#pragma once

#include <alloc/allocator.hpp>
#include <base/line.hpp>
#include <section/engine.hpp>

#include <holdfast/pool.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace hf {

/// Volatile side of a lane; its owner writes, others look at mark_due.
struct alignas(line_bytes) lane_state {
    std::uint64_t epoch = 0; // of the lane's newest section
    // Epoch of a committed section whose mark is not stored: it waits for the lane's next begin
    // record, or for another thread to store it. 0: none.
    std::atomic<std::uint64_t> mark_due{0};
    std::atomic<std::uint64_t> settled{0}; // the mark that was last flushed for its owner
    bool taken = false; // guarded by impl::lanes_lock
};

/// Permutes the indices of the pending sections it is given: they are recovered one after another
/// in that order. None given: side by side.
using recovery_order = std::function<void(std::vector<std::size_t>&)>;

class pool::impl {
public:
    impl(std::unique_ptr<pool_file> opened, const open_options& options)
        : file(std::move(opened)), blocks(*file), engines(options.engines),
          guard_signals(options.guard_signals), salvage(options.salvage),
          keep_overwritten(options.keep_overwritten),
          recovery(options.read_only ? recovery_policy::roll_back : options.recovery),
          recovery_ms_max(options.recovery_ms_max),
          lanes(file->shape().lane_count) {}

    /// The rest of pool::open: everything but opening the file. 'order' is for tests.
    static result<pool> open(std::unique_ptr<pool_file> file, const open_options& options,
                             std::chrono::steady_clock::time_point start,
                             const recovery_order& order = {});
    status check_and_recover(const recovery_order& order);
    status attach_engines();
    /// Settles what the clean close vouches for. A file that was cut, and a pool with a section
    /// open, stay marked open.
    void close() noexcept;
    std::uint32_t lane_in_section() noexcept;
    /// Lets go of the pool as a crash would: nothing is settled, nothing marked.
    static void abandon(pool opened);

    std::unique_ptr<pool_file> file;
    allocator blocks;
    std::vector<const engine*> engines;
    std::uint32_t engine_bits = 0; // of 'engines'
    std::uint64_t instance = 0;    // unique in this process: attachments outlive pools
    recovery_report report;
    bool guard_signals = true;         // of the options
    bool salvage = false;              // of the options
    bool keep_overwritten = true;      // of the options
    recovery_policy recovery = recovery_policy::complete; // of the options
    std::uint32_t recovery_ms_max = 0; // of the options

    std::mutex lanes_lock;
    // Held from the beginning to the end of a section on the last lane, which all threads share
    // that come when no other is free. Locks are taken before a section begins: none waits here for
    // who waits for it.
    std::mutex last_lane_turns;
    std::vector<lane_state> lanes;
    std::atomic<unsigned> section_threads{0}; // threads that have begun sections
    // The one lane that may have a mark due: its owner was alone when it last committed. Looked at
    // by every section, changed when threads come and go.
    static constexpr std::uint32_t no_lane = ~std::uint32_t{0};
    std::atomic<std::uint32_t> lazy_lane{no_lane};

    std::mutex root_lock;

    /// Of 'engines', in their order; null where one keeps none. Ends before the file does.
    std::vector<std::unique_ptr<engine_state>> states;
    engine_state* state_of(const engine* of) const noexcept {
        for (std::size_t i = 0; i < states.size(); ++i)
            if (engines[i] == of) return states[i].get();
        return nullptr;
    }

    /// Stores and flushes the lane's mark if it is still due; durable with the caller's next fence.
    /// Any thread may call it: the mark only ever grows.
    void store_due_mark(std::uint32_t lane) noexcept;

    /// ok, or in_use: the pool is the parent process's (pool/forks.hpp).
    status usable() const;
    /// Of the parent's pools that this process has let go of, the one before. They cannot be
    /// destroyed: whatever threads and locks they hold stayed behind.
    std::unique_ptr<impl> let_go_before;

    bool contains(const void* address) const noexcept { return file->contains(address); }
    std::uint64_t offset_of(const void* address) const noexcept {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - file->base());
    }
    void* at(std::uint64_t offset) const noexcept { return file->base() + offset; }
};

/// The mask of engines given to an open.
std::uint32_t engine_bits_of(const std::vector<const engine*>& engines) noexcept;

} // namespace hf
