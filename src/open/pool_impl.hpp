// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An open pool: its file, its allocator, its lanes and the engines it was opened with.
#pragma once

#include <alloc/allocator.hpp>
#include <base/assert.hpp>
#include <log/lane_set.hpp>
#include <open/engine.hpp>
#include <open/mark_guard.hpp>

#include <holdfast/pool.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hf {

class pool::impl {
public:
    impl(std::unique_ptr<pool_file> opened, const open_options& options)
        : file(std::move(opened)), blocks(*file), engines(options.engines),
          guard_signals(options.expert.guard_signals),
          check_pointers(options.expert.check_pointers || checks_pointers_anyway()),
          salvage(options.salvage),
          recovery(options.read_only ? recovery_policy::roll_back : options.recovery),
          lanes(*file) {}

    /// pool::open with exactly the given engines: for tools, which open other programs' pools.
    static result<pool> open_with(const std::string& path, const open_options& options);
    /// The rest of it: everything but opening the file. 'order' is for tests.
    static result<pool> open(std::unique_ptr<pool_file> file, const open_options& options,
                             std::chrono::steady_clock::time_point start,
                             const recovery_order& order = {});
    /// Whether the parts of an open pool belong together: a lane for each of the header's, each
    /// engine once, and its state at its place. 'attached': engines' states are there.
    bool valid(bool attached) const noexcept;
    /// ok, or wrong_layout: the root, or the new one of a migration, is there and has another size.
    /// 0 is any size.
    status check_root(std::uint64_t bytes) const;
    /// 'checked' is called when nothing but sections is left to recover.
    status check_and_recover(const recovery_order& order, const std::function<void()>& checked);
    status attach_engines();
    void say_opened() const noexcept;
    /// Runs open_options::migrate, and gives the pool its new layout.
    static status migrate(pool& whole, const open_options& options);
    /// The lane of an open section, or its engine; neither: no section is open.
    struct open_section {
        std::uint32_t lane = lane_set::no_lane;
        const engine* of = nullptr;
        explicit operator bool() const noexcept {
            return lane != lane_set::no_lane || of != nullptr;
        }
        std::string name() const; // for people
    };
    open_section find_open_section() noexcept;
    /// hf::settle().
    void settle() noexcept;
    void settle_for_close() noexcept;
    /// Whether open itself reads what sections guard with locks, or gives up what it cannot
    /// recover: then no section goes on beside new work.
    bool needs_sections_ended() const noexcept {
        return salvage || file->migrates() || file->migrating() || has_to_rebuild();
    }
    /// engine_state::go_on() and end_own_work() of all.
    status go_on();
    void end_own_work(bool stop) noexcept;
    /// The same of wait_for_own_work(). Ends the process in a section of the calling thread, and in
    /// a child that has no part in the pool; 'call' is what to say then.
    void wait_for_own_work(const char* call) noexcept;
    status can_rebuild() const;
    /// Whether one of its engines has yet to rebuild what the last open has left.
    bool has_to_rebuild() const noexcept;
    static void rebuild(pool& whole);
    /// Settles everything that the clean close vouches for. A file that was cut, and a pool with an
    /// open section, stay marked open.
    void close() noexcept;
    /// Lets go of the pool as a crash would: nothing is settled, nothing marked.
    static void abandon(pool opened);

    std::unique_ptr<pool_file> file;
    allocator blocks;
    std::vector<engine_ptr> engines;
    std::uint32_t engine_bits = 0; // of 'engines'
    bool runs_again = false;       // recovery calls functions of one of them, which read the pool
    std::uint64_t instance = 0;    // unique in this process: attachments outlive pools
    recovery_report report;
    // Parts of report.open_ms: the file locked, checked, mapped; what counts of its content
    // bounded, its blocks put back; sections ended, engines attached. For benchmarks.
    double map_ms = 0, check_ms = 0, sections_ms = 0;
    bool guard_signals = true;   // of the options
    bool check_pointers = false; // of what sections keep (section/kept_pointers.hpp)
    bool salvage = false;        // of the options
    recovery_policy recovery = recovery_policy::complete; // of the options

    lane_set lanes;
    std::mutex root_lock;
    mark_guard::state guarded;

    /// The states of 'engines', in their order; null if an engine keeps none. They end before the
    /// file does.
    std::vector<std::unique_ptr<engine_state>> states;
    engine_state* state_of(engine_bit of) const noexcept {
        HF_ASSERT_SLOW(states.size() <= engines.size());
        for (std::size_t i = 0; i < states.size(); ++i)
            if (engines[i]->bit() == of) return states[i].get();
        return nullptr;
    }

    /// Whether every pool's are checked, whatever its options: expert_options::check_pointers.
    static bool checks_pointers_anyway() noexcept;
    /// ok, or in_use: the pool is the parent process's (pool/forks.hpp).
    status usable() const;
    /// The parent's pools that this process has let go of: the previous one. They cannot be
    /// destroyed, because their threads and locks stayed behind in the parent.
    std::unique_ptr<impl> let_go_before;

    bool contains(const void* address) const noexcept { return file->contains(address); }
    std::uint64_t offset_of(const void* address) const noexcept {
        HF_ASSERT_SLOW(contains(address));
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - file->base());
    }
    /// The engine that has this bit, as it was given; null: it was not.
    const engine* given(std::uint32_t bit) const noexcept {
        for (const engine_ptr& e : engines)
            if (e->bit() == bit) return e.get();
        return nullptr;
    }
    /// The engine of this section among those given; null: not given.
    const engine* engine_of(const pending_section& section) const noexcept {
        return given(section.begin.engine);
    }
    void* at(std::uint64_t offset) const noexcept {
        HF_ASSERT_SLOW(offset < file->shape().max_bytes);
        return file->base() + offset;
    }
};

/// The request to pool_file::open, from the options and the engines among them. Throws
/// std::bad_alloc.
file_options file_options_of(const open_options& options);

/// Makes a zero-filled block of 'bytes' that '*offset' names, and '*size', unless that is null, has
/// the size of. 3 ordering points. After a crash the word names nothing, or the block, which
/// settle_anchors() makes allocated.
/// Errors: pool_full. Throws std::bad_alloc before anything is stored.
result<void*> make_anchored(pool::impl& pool, const char* what, std::uint64_t bytes,
                            std::uint64_t* offset, std::uint64_t* size);

/// The mask of engines given to an open, and of those for which 'which' holds.
std::uint32_t engine_bits_of(const std::vector<engine_ptr>& engines) noexcept;
std::uint32_t engine_bits_of(const std::vector<engine_ptr>& engines,
                             bool (engine::*which)() const noexcept) noexcept;

/// Makes a block allocated whose naming word has been written first. Durable when it returns;
/// idempotent.
/// Requires: withdraw_anchor().
/// Errors: corrupt: 'what' is not a block of the heap, or overlaps another one's.
status settle_anchor(pool::impl& pool, const char* what, std::uint64_t offset, std::uint64_t bytes);
/// The same for the blocks that the pool's root words name.
status settle_anchors(pool::impl& pool);
/// The checks of that which are possible before anything is stored. Reads only.
status check_anchors(const pool::impl& pool);
/// Makes an anchor free that is not wholly allocated (engine::withdraw): settle_anchor() makes it
/// whole. Ignores anything that is not a block.
void withdraw_anchor(pool::impl& pool, std::uint64_t offset, std::uint64_t bytes) noexcept;
void withdraw_anchors(pool::impl& pool) noexcept;

/// Whether salvage goes on after this refusal: always for damage; in a torn pool for any reason.
bool salvages(const pool::impl& pool, const status& refused) noexcept;
/// Under salvage: gives up all that an engine keeps of its own, durably: the root word that names
/// it becomes 0. 'why' becomes a warning. Its blocks stay allocated.
void forget_state(pool::impl& pool, const engine& whose, const status& why);

/// The end of a refusal: what the user can do about a section that cannot be completed.
inline std::string ways_out(const pool_file& file) {
    return "; to give up what was cut short, as if it had never begun, run `holdfast repair "
           "--roll-back " +
           file.path() +
           "`, or open the pool with recovery_policy::roll_back; open_options::read_only shows "
           "the pool as it would be then";
}
/// The same of one that cannot be rolled back for certain.
inline std::string last_way_out(const pool_file& file) {
    return "; to give up what was cut short, which may stay half done, run `holdfast repair "
           "--roll-back --force " +
           file.path() +
           "`, or open the pool with recovery_policy::roll_back and salvage; "
           "open_options::read_only and salvage show the pool as it would be then";
}

} // namespace hf
