// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool: a file of ordinary C++ objects, mapped at its canonical address so that native pointers
// hold. open() checks the file as hostile input, then runs the recovery of the engines that it is
// given, and only then hands out the root.
#pragma once

#include <holdfast/abi/stored.hpp>
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

/// Options that a program seldom sets. Keep the defaults unless you know why they are wrong.
struct expert_options {
    bool eadr = false;     // pmem mode: caches are in the persistence domain
    bool prefault = false; // touch every page at open: experiments
    bool seal = true; // closing reads every block and leaves checksums for `holdfast verify --deep`
    bool follow_symlinks = false;
    relocation relocate = relocation::never; // of an existing pool
    /// While pending sections are recovered, a fault becomes a refusal. A signal that comes from a
    /// file cut short, a closed pool, or null in place of a block is explained before it kills.
    bool guard_signals = true;
    /// Sections of engine redo, and of undo in modes process and power (so all of auto), look at
    /// each word that they are about to keep. If one is an address of the stack, the heap or the
    /// program, the process ends, and the section has not happened. Costs a system call for each
    /// word that might be one. Preset checked, and HOLDFAST_CHECK_POINTERS=1 in the environment, do
    /// the same.
    bool check_pointers = false;
    /// Between sections all pools of the process are read-only for it: behind each of the first
    /// 256, later once in 4 ms. A store of the program's own, or one that its section does not know
    /// of, ends the process before it is made, and names its function, file and line. What the
    /// library stores passes. HOLDFAST_GUARD=1 in the environment does the same.
    bool guard_marks = false;
};

struct open_options {
    std::string layout;            // application's layout name, at most 63 bytes: "numbers/1"
    std::uint64_t layout_hash = 0; // application's hash of its types; 0 when it has none
    /// sizeof the root's type. open refuses a pool whose root has another size, as the type had
    /// when the pool was made. 0: not checked.
    std::uint64_t root_bytes = 0;
    /// Initial size of a new pool, at least 64 KiB; 0: 1 MiB, or max_bytes if that is less.
    std::uint64_t create_bytes = 64ULL << 20;
    /// Growth limit, kept in the pool; 0: 64 times create_bytes, or 4 GiB if that is 0, too. A
    /// value above an existing pool's limit raises that limit.
    std::uint64_t max_bytes = 0;
    create creation = create::if_missing;
    hf::mode mode = hf::mode::process;
    /// These engines recover the pool, and new sections may use them. Empty: the engines that the
    /// program's failure-atomic functions are built for. open refuses (bad_argument) if engines
    /// with sections are given and the functions are built for others.
    std::vector<engine_ptr> engines = {};
    std::uint32_t max_threads = 64; // log lanes of a new pool: threads in sections at a time
    bool salvage = false;           // open what would be refused as torn
    recovery_policy recovery = recovery_policy::complete;
    /// Opens any pool for a look, whatever program made it. Nothing is written to the file, and no
    /// section may begin. What a crash cut short is rolled back in memory; torn if that is not
    /// complete.
    bool read_only = false;
    /// Lets other processes read MOD containers and persistent objects (simpo/view.hpp) while this
    /// process has the pool open for writing. The readers open it with read_only and shared; there
    /// may be any number. They see snapshots of containers, as threads of this process do. Memory
    /// that a reader still uses is not used again, however long the reader takes.
    /// With read_only: this process is such a reader. The pool was closed, or its writer has
    /// 'shared'. Later writers with 'shared' may come and go meanwhile; other writers are refused.
    /// Engines: mod or simpo among them; a reader has no others. Not in mode power, with migrate,
    /// or to raise max_bytes.
    bool shared = false;
    /// Brings a pool of another layout, or layout hash, to this one before open() returns. Without
    /// this function such a pool is refused. open() calls it when all sections are recovered, and
    /// passes its error on. If it was cut short or has failed, the next open calls it again. It
    /// refuses a layout that it does not know (migration::refuse). The engines, and the functions
    /// of pending sections, are those that the pool was left with.
    std::function<status(migration&)> migrate = {};
    expert_options expert = {};
};

class pool {
public:
    /// Opens, or creates, the pool at 'path'. On return every section that a crash cut short is
    /// completed (redo, clobber), rolled back (undo, selective), gone, or going on (justdo::wait).
    ///
    /// Cost:     O(lanes + pending sections), whatever the pool's size.
    /// Crash:    opening again cures a crash while opening or recovering.
    /// Errors:   see errc. The file stays byte-identical when open refuses what it finds. Once
    ///           recovery has begun to put blocks back, an error leaves what a crash would leave.
    /// Threads:  one process at a time has a pool open for writing, and once. For others that read,
    ///           see open_options::read_only and shared.
    static result<pool> open(const std::string& path, const open_options& options);

    pool(pool&&) noexcept;
    pool& operator=(pool&&) noexcept;
    /// Closes cleanly. Requires: no section is open. Threads that used the pool may still live.
    ~pool();

    /// The root object, zero-filled by the first call.
    ///
    /// Errors:   wrong_layout (the pool's root has another size), pool_full, in_use (this process
    ///           is a child of the one that opened the pool), io_error (the disk failed while the
    ///           pool grew).
    template <class T> result<T*> find_root() {
        static_assert(detail::stored<T>::checked);
        [[maybe_unused]] detail::root_of<T> type;
        result<void*> found = root_bytes(sizeof(T));
        if (!found) return found.error();
        return static_cast<T*>(*found);
    }
    /// The same, but null on an error. The log (stderr, <holdfast/log.hpp>) says which error.
    template <class T> T* root() noexcept {
        static_assert(detail::stored<T>::checked);
        [[maybe_unused]] detail::root_of<T> type;
        return static_cast<T*>(root_or_say(sizeof(T)));
    }

    /// Copies the pool to a new file: all that is committed at one moment, while other threads work
    /// on. Sections under way at that moment are in the copy as a crash would leave them; the
    /// copy's first open recovers them. The copy is on the disk when this returns. Any tool may
    /// copy, move and open it. To open it beside this pool, set open_options::expert.relocate.
    ///
    /// Cost:     reads the pool twice. Every thread of this process stops while the pool is
    ///           compared with the copy: copy_report::pause_ms.
    /// Crash:    no copy, or the whole of it, because it gets its name last.
    /// Errors:   exists, pool_full (the disk), permission (the system lets no process be stopped:
    ///           ptrace is off, or a debugger has this one), io_error, in_use (a child of the
    ///           process that opened the pool), mode_unavailable (in mode power part of the pool is
    ///           in its log).
    /// Threads:  any; several calls at once wait for each other.
    result<copy_report> copy_to(const std::string& path, const copy_options& options) const;
    result<copy_report> copy_to(const std::string& path) const;

    /// Gives the disk space of free memory back to the file system, in whole chunks that contain no
    /// block (64 KiB, or 4 KiB in pools under 16 MiB). The file keeps its length; `du` shows the
    /// change. Such chunks stay free, and get space again when they are needed: on a full disk the
    /// pool is then full. The space stays given back until then, also after a close or a kill. MOD
    /// containers are collected first (mod::store::collect). A thread keeps up to 128 spare blocks
    /// of each size, and those keep their chunks; right after an open it has none. Returns the
    /// bytes given back.
    ///
    /// Cost:     reads the heap's tables, a 128th of the pool. Threads that need a new chunk wait,
    ///           16 MiB at a time.
    /// Ordering: 2 points for the first trim since an open that found no hole; 4 for each arena
    ///           that MOD gives back.
    /// Crash:    some of the space is given back; nothing else has changed.
    /// Errors:   bad_argument (inside an update of MOD), mode_unavailable (mode power, or a file
    ///           system without holes), permission, in_use (a child of the process that opened the
    ///           pool), io_error.
    /// Threads:  any.
    result<std::uint64_t> trim();
    /// Until the pool is closed, allocation takes no space behind its first 'bytes': beyond them it
    /// fails as in a full pool. Logs and recovery may still use all of max_bytes(). May be called
    /// again with more or less. Data behind the limit stay and stay usable, and the file does not
    /// become smaller (trim() does that). Small raises add up: about once for each eighth of its
    /// size the pool needs room for new tables, a thousandth of it. If a raise leaves less room,
    /// the pool grows after a later one. why_full() says what the pool was refused.
    ///
    /// Ordering: 0 points.
    /// Crash:    the next open has no such limit.
    /// Errors:   bad_argument (less than a chunk, more than max_bytes()), limit_reached (the pool
    ///           cannot grow any more, whatever the limit; the limit holds all the same).
    /// Threads:  any; allocations in progress may still use the old limit.
    status limit_growth(std::uint64_t bytes);
    /// Why the pool did not grow at its last attempt, and what to do. For callers of hf::make,
    /// hf_alloc and hf::staged::near, which return nothing when there is no room.
    ///
    /// Errors:   pool_full: the pool's limit, limit_growth, a full disk, a quota, ulimit -f or -v.
    ///           io_error: the disk has failed. ok: the pool has grown, or has not tried.
    /// Threads:  any.
    status why_full() const;
    /// max_bytes(), unless it was limited.
    std::uint64_t growth_limit() const noexcept;

    /// The mode that the pool was opened in.
    hf::mode mode() const noexcept;
    /// In mode power adr: the log represents such memory.
    hf::domain domain() const noexcept;
    /// Whether the pool is in pmem mode on memory that is not persistent, or in power mode on no
    /// disk (tmpfs): for tests and benchmarks.
    bool emulated() const noexcept;
    const std::string& path() const noexcept;
    /// Bytes that the pool has of its file now, and its growth limit, which the file keeps.
    std::uint64_t size_bytes() const noexcept;
    std::uint64_t max_bytes() const noexcept;
    /// How often the pool was opened. Stored in the pool, grows by one each time, never 0.
    std::uint64_t generation() const noexcept;
    /// What recovery did when the pool was opened.
    const recovery_report& recovered() const noexcept;
    /// What open noticed and people should read (a repaired header copy, emulated pmem, …).
    const std::vector<std::string>& warnings() const noexcept;
    /// Whether the address lies in the pool's range of addresses, which has max_bytes().
    bool contains(const void* address) const noexcept;
    /// Bytes from the pool's start. Requires: contains(address).
    std::uint64_t offset_of(const void* address) const noexcept;
    /// For a program that finds its data damaged: closing leaves no seal, because a seal would
    /// vouch for them.
    void leave_unsealed() noexcept;
    /// Whether the pool is mapped elsewhere than at its canonical address.
    bool relocated() const noexcept;

    /// Mode power: what the log has written so far, in bytes and in waits for the disk. Zeros in
    /// other modes.
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

/// While one lives, what this thread does to the pool waits and becomes durable together, when the
/// object ends: in mode power the thread waits for the disk once. In the other modes it changes
/// nothing: each function is durable on return.
///
/// In mode power the end also makes the work of other threads durable: what had returned by then,
/// and what readers of MOD containers could see by then. So a program that acts on what it read
/// there (answers a client, say) does so after the end. It does not wait if everything is durable
/// already.
///
/// Cost:     one wait for the disk at its end, in mode power; else nothing.
/// Crash:    a failure of the machine may leave any first part of what was done since it began. In
///           mode power a kill may, too. Other threads may have seen what such a crash takes back.
/// Threads:  it begins and ends on one thread, outside sections; they nest. The pool outlives it.
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
