// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool: a file of ordinary C++ objects, mapped at its canonical address so that native pointers
// hold. open() checks the file as hostile input, runs the recovery of the engines it is given, and
// only then hands out the root.
#pragma once

#include <holdfast/author/persist.hpp>
#include <holdfast/options.hpp>
#include <holdfast/recovery.hpp>
#include <holdfast/result.hpp>
#include <holdfast/sizes.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

struct hf_pool; // the C API's

namespace hf {

class pool;
struct copy_options; // <holdfast/copy.hpp>
struct copy_report;
class migration; // <holdfast/migration.hpp>

/// What a program seldom sets: the defaults are right unless it knows why not.
struct expert_options {
    bool eadr = false;     // pmem mode: caches are in the persistence domain
    bool prefault = false; // touch every page at open: experiments
    bool seal = true; // closing reads every block and leaves checksums for `holdfast verify --deep`
    bool follow_symlinks = false;
    relocation relocate = relocation::never; // of an existing pool
    /// Signal handlers, last resorts both: while pending sections are recovered a fault becomes a
    /// refusal; and a SIGBUS because somebody cut the open file is explained before it kills.
    bool guard_signals = true;
};

struct open_options {
    std::string layout;            // application's layout name, at most 63 bytes: "numbers/1"
    std::uint64_t layout_hash = 0; // application's hash of its types; 0 when it has none
    /// sizeof the root's type: open refuses a pool whose root has another size, as the type was
    /// when the pool was made. 0: nothing is asked.
    std::uint64_t root_bytes = 0;
    /// Initial size of a new pool, at least 64 KiB; 0: 1 MiB, or max_bytes if that is less.
    std::uint64_t create_bytes = 64ULL << 20;
    /// Growth limit, kept in the pool; 0: 64x create_bytes, or 4 GiB where that is 0. One above an
    /// existing pool's raises it.
    std::uint64_t max_bytes = 0;
    create creation = create::if_missing;
    hf::mode mode = hf::mode::process;
    /// Recovered here; new sections may use them. Empty: those that the program's failure-atomic
    /// functions are built for. Where engines with sections are given, and the functions are built
    /// for others, open refuses (bad_argument).
    std::vector<engine_ptr> engines = {};
    std::uint32_t max_threads = 64; // log lanes of a new pool: threads in sections at a time
    bool salvage = false;           // open what would be refused as torn
    recovery_policy recovery = recovery_policy::complete;
    /// For a look at any pool, whoever made it: nothing is written to the file, and no section may
    /// be begun. What a crash cut short is rolled back in memory; torn where that is not complete.
    bool read_only = false;
    /// Other processes may read MOD containers and persistent objects (simpo/view.hpp) while this
    /// one has the pool open for writing: those that open it with read_only and shared, any number.
    /// Of containers they see snapshots, as threads of this process do, and memory that one of
    /// theirs still reads is not used again, however long it takes them. With read_only: this one
    /// is such a reader, of a pool that was closed or whose writer has 'shared'; writers with it
    /// come and go meanwhile, others are refused.
    /// Engines: mod or simpo among them; of a reader these alone. Not in mode power, with migrate,
    ///           or to raise max_bytes.
    bool shared = false;
    /// Brings a pool of another layout, or layout hash, to this one, before open() returns;
    /// without, it is refused. Called when all sections are recovered, and again by the next open
    /// where it was cut short or has returned an error, which open() passes on; a layout that it
    /// does not know it refuses (migration::refuse). The engines, and the functions of pending
    /// sections, are those that the pool was left with.
    std::function<status(migration&)> migrate = {};
    expert_options expert = {};
};

class pool {
public:
    /// Opens, or creates, the pool at 'path'; on return every section that a crash cut short is
    /// completed (redo, clobber, justdo), rolled back (undo, selective), or has never been.
    ///
    /// Cost:     O(lanes + pending sections), whatever the pool's size.
    /// Crash:    a crash while opening or recovering is cured by opening again.
    /// Errors:   see errc; the file is left byte-identical when open refuses what it finds. Once it
    ///           puts blocks back, an error leaves what a crash would.
    /// Threads:  one process at a time has a pool open to write, once; others that read:
    ///           open_options::read_only, shared.
    static result<pool> open(const std::string& path, const open_options& options);

    pool(pool&&) noexcept;
    pool& operator=(pool&&) noexcept;
    /// Closes cleanly. Requires: no section open; threads that used the pool may still live.
    ~pool();

    /// The root object, zero-filled when it is first asked for.
    ///
    /// Errors:   wrong_layout (the pool's root has another size), pool_full, in_use (this process
    ///           is a child of the one that opened the pool), io_error (the disk failed while the
    ///           pool grew).
    template <class T> result<T*> find_root() {
        static_assert(!std::is_polymorphic_v<T>,
                      "virtual tables have other addresses in every process");
        result<void*> found = root_bytes(sizeof(T));
        if (!found) return found.error();
        return static_cast<T*>(*found);
    }
    /// The same, null where that is an error: the log (stderr, <holdfast/log.hpp>) says which.
    template <class T> T* root() noexcept {
        static_assert(!std::is_polymorphic_v<T>,
                      "virtual tables have other addresses in every process");
        return static_cast<T*>(root_or_say(sizeof(T)));
    }

    /// Copies the pool to a new file: all that is committed, as it stands at one moment, while
    /// other threads work on. Sections that are under way in that moment are in the copy as a crash
    /// would leave them, and its first open recovers them. The copy is on the disk when this
    /// returns, and may be copied, moved and opened by any tool that opens pools; beside this one
    /// it opens with open_options::expert.relocate.
    ///
    /// Cost:     reads the pool twice; every thread of this process stops while the pool is
    ///           compared with the copy, copy_report::pause_ms.
    /// Crash:    no copy, or the whole of it: it gets its name last.
    /// Errors:   exists, pool_full (the disk), permission (the system lets no process be stopped:
    ///           ptrace is off, or a debugger has this one), io_error, in_use (a child of the
    ///           process that opened the pool), mode_unavailable (mode power: part of the pool is
    ///           in its log).
    /// Threads:  any; several at once wait for each other.
    result<copy_report> copy_to(const std::string& path, const copy_options& options) const;
    result<copy_report> copy_to(const std::string& path) const;

    /// Gives the disk space of what is free back to the file system: whole chunks (64 KiB, 4 KiB in
    /// pools under 16 MiB) that no block is in. The file keeps its length; `du` tells. They are
    /// free as before, and are allocated again when they are needed: then a full disk is a full
    /// pool. This lasts until the chunks are used, also when the pool is closed, or its process
    /// killed. MOD containers are collected first (mod::store::collect). What threads keep at hand,
    /// up to 128 blocks of a size each, keeps its chunks; an open right after a close keeps none.
    /// Returns the bytes given back.
    ///
    /// Cost:     reads the heap's tables, a 128th of the pool; threads that need a new chunk wait,
    ///           16 MiB at a time.
    /// Ordering: 2 points for the first one since an open found no hole; 4 for each arena that MOD
    ///           gives back.
    /// Crash:    some of it is given back; nothing else has changed.
    /// Errors:   bad_argument (inside an update of MOD), mode_unavailable (mode power; no holes
    ///           there), permission, in_use (a child of the process that opened the pool),
    ///           io_error.
    /// Threads:  any.
    result<std::uint64_t> trim();
    /// Until it is closed the pool takes no space behind its first 'bytes' from here on: there
    /// allocation fails as in a full pool, for all but logs. May be called again, with more or
    /// less. What stands behind them stays and goes on, and the file does not become smaller
    /// (trim()). Logs and recovery may use all of max_bytes(). Small steps add up: about every
    /// eighth of its size the pool needs room for new tables, a thousandth of it, and a limit that
    /// leaves less grows it when it is raised again. What the pool has not grown for, why_full()
    /// says.
    ///
    /// Ordering: 0 points. Crash: the next open knows nothing of it.
    /// Errors:   bad_argument (less than a chunk, more than max_bytes()), limit_reached (the pool
    ///           cannot grow any more, whatever the limit; it holds all the same).
    /// Threads:  any; allocations in progress may still use the old limit.
    status limit_growth(std::uint64_t bytes);
    /// Why the pool has not grown when that was last tried, and what to do: hf::make, hf_alloc and
    /// hf::staged::near return nothing, and no more than that. pool_full: the pool's limit,
    /// limit_growth, a full disk, a quota, ulimit -f or -v. io_error: the disk has failed. ok: it
    /// has grown, or has not tried.
    status why_full() const;
    /// max_bytes(), unless it was limited.
    std::uint64_t growth_limit() const noexcept;

    hf::mode mode() const noexcept;
    /// Mode power: adr, for which its log stands.
    hf::domain domain() const noexcept;
    /// pmem mode on memory that is not persistent, or power mode on no disk (tmpfs): for tests and
    /// benchmarks.
    bool emulated() const noexcept;
    const std::string& path() const noexcept;
    std::uint64_t size_bytes() const noexcept;
    std::uint64_t max_bytes() const noexcept;
    /// How often the pool was opened; stored, grows by one each time. Never 0.
    std::uint64_t generation() const noexcept;
    const recovery_report& recovered() const noexcept;
    /// Lines for people that open wants to say (repaired header copy, emulated pmem …).
    const std::vector<std::string>& warnings() const noexcept;
    bool contains(const void* address) const noexcept;
    /// Bytes from the pool's start. Requires: contains(address).
    std::uint64_t offset_of(const void* address) const noexcept;
    /// For a program that finds its data damaged: closing leaves no seal, which would vouch for
    /// them.
    void leave_unsealed() noexcept;
    /// Whether the pool is mapped elsewhere than at its canonical address.
    bool relocated() const noexcept;

    /// Mode power: what the log has written so far, in bytes and in waits for the disk. Zeros
    /// elsewhere.
    struct log_written {
        std::uint64_t bytes = 0, waits = 0, checkpoints = 0;
    };
    log_written logged() const noexcept;

    class impl;
    impl& internals() const noexcept { return *impl_; }

private:
    friend struct ::hf_pool;
    explicit pool(std::unique_ptr<impl> opened) noexcept;
    result<void*> root_bytes(std::size_t bytes);
    void* root_or_say(std::size_t bytes) noexcept;
    std::unique_ptr<impl> impl_;
};

/// While one lives, what this thread does to the pool becomes durable together, when it ends: in
/// mode power it waits for the disk once. In the other modes each function is durable on return, as
/// ever. When it ends so is, in mode power, what other threads have done, as far as it had
/// returned, or was to be read in a MOD container, before: who tells what it has read tells it
/// behind the end. Where all is durable nothing waits.
///
/// Crash:    of what was done since it began a failure of the machine may leave any first part, and
///           so may, in mode power, the death of the process. Other threads may see what it would
///           take back.
/// Threads:  it lives and ends on one thread, outside sections; they nest. The pool outlives it.
class durable_together {
public:
    explicit durable_together(pool& in) noexcept;
    ~durable_together();
    durable_together(const durable_together&) = delete;
    durable_together& operator=(const durable_together&) = delete;

private:
    pool::impl* in_;
};

} // namespace hf
