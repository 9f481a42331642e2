// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An engine for pool::open: which durable state it owns and how it recovers its sections.
//
// Pools recover engines one after another, in the order of their verbs (holdfast/recovery.hpp).
// Rolling back and replaying need no function of this build, and are done before functions run
// again. Pending sections of several engines of one pool touch different memory: a thread has one
// section open at a time, of whichever engine, and holds its locks until it has committed
// (commit_marks.hpp, 2).
#pragma once

#include <base/engines.hpp>
#include <log/lane.hpp>

#include <holdfast/pool.hpp>

#include <functional>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace hf {

/// An engine's state for an open pool, besides what its sections need.
class engine_state {
public:
    virtual ~engine_state() = default; // touches the pool no more
    /// Makes all work that has returned, on any thread, durable on return; in mode power behind the
    /// next promise.
    virtual void settle() noexcept {}
    /// open is about to return: what recovery has begun may go on beside the program's work.
    /// Errors: what has stopped it.
    virtual status go_on() { return {}; }
    /// Ends that: it is complete, or stops where it is, as a crash would stop it. What cannot be
    /// completed shows in in_section(). Nobody else works in the pool.
    virtual void end_own_work(bool /*stop*/) noexcept {}
    /// Waits until it is complete, beside new work. Requires: the caller has no section open.
    virtual void wait_for_own_work() noexcept {}
    /// The pool is being closed cleanly; its file is whole.
    virtual void settle_for_close() noexcept = 0;
    /// Gives the heap back what it keeps and does not need (pool::trim).
    virtual status trim() { return {}; }
    /// Whether a thread has a section open that lanes do not show, or has ended with one. The pool
    /// then stays marked open, and the next open recovers it.
    virtual bool in_section() noexcept { return false; }
};

/// Permutes the indices of the pending sections of one engine: they are recovered one after another
/// in that order. Empty: in index order, or side by side, as the engine likes. For tests.
using recovery_order = std::function<void(std::vector<std::size_t>&)>;

class engine {
public:
    /// In the table: its bit, name and verb.
    virtual const engine_row& row() const noexcept = 0;
    engine_bit bit() const noexcept { return static_cast<engine_bit>(row().bit); }
    const char* name() const noexcept { return row().name; }

    /// Can this build recover 'section', one of the engine's, by the pool's policy? Reads only.
    /// Errors: function_changed, corrupt, address_taken, torn.
    virtual status check(const pool::impl& pool, const pending_section& section) const;
    /// Completes the engine's pending sections, or rolls them back, in the order, and as far side
    /// by side, as it can prove to be right. Their blocks are back as they were before them.
    /// Everything is durable when it returns; stopped anywhere, it can begin anew. Adds to 'done'.
    /// Errors: what stopped it; the pool stays marked open.
    virtual status recover_all(pool::impl& pool, std::span<pending_section> pending,
                               const recovery_order& order, engine_recovery& done) const;

    // open calls these on the engine as it was given:
    /// Whether its options are valid. Errors: bad_argument.
    virtual status check_options(const std::string& /*path*/) const { return {}; }
    /// The part of its state that other processes may read while this one writes
    /// (open_options::shared), for people. Null: its data change under them.
    virtual const char* read_beside() const noexcept { return nullptr; }
    /// Whether its sections leave out log records that rolling them back needs. The header of an
    /// open pool records it (pool/header.hpp).
    virtual bool drops_bytes() const noexcept { return false; }
    /// Whether it lets sections store what is computed again after a crash. The header says so
    /// likewise; the next open then calls rebuild() when everything is recovered, and again where
    /// that was cut short.
    virtual bool rebuilds() const noexcept { return false; }
    virtual void rebuild(pool&) const {}
    /// The lazily stored data, and what the engine must be given to compute it again: for the
    /// refusal of an open without that.
    virtual const char* rebuild_needs() const noexcept { return ""; }

    // Engines that keep state of their own in the pool, in this order:
    /// Checks that this build can go on with the state. Reads only. Errors: corrupt.
    virtual status inspect(const pool::impl&) const { return {}; }
    /// Under salvage, after inspect() has refused its state: durably removes every section, thread
    /// or object that cannot be believed, and warns of each. If inspect() still refuses the rest,
    /// all of it is given up (forget_state).
    virtual void give_up_unsound(pool::impl&) const {}
    /// Makes free in the heap what its state names and a failure may have left half allocated:
    /// before any block is claimed, since a bit of it may stand in another one's chunk, without the
    /// entry that explains it. settle() allocates it again. Idempotent.
    virtual void withdraw(pool::impl&) const {}
    /// Settles which blocks are its own, and claims those that its sections hold, before sections
    /// of any engine are recovered. Idempotent.
    virtual status settle(pool::impl&) const { return {}; }
    /// Everything is recovered. Null: it keeps nothing.
    virtual result<std::unique_ptr<engine_state>> attach(pool::impl&) const {
        return std::unique_ptr<engine_state>();
    }

protected:
    ~engine() = default;
};

/// One that nobody destroys: pools may outlive static destructors.
inline engine_ptr lasting(const engine& one) noexcept { return {engine_ptr(), &one}; }
/// Such a one, made of options. Takes no memory of the heap.
template <class Engine, class Options> engine_ptr lasting_with(const Options& how) noexcept {
    alignas(Engine) static std::byte place[sizeof(Engine)];
    static const Engine& only = *::new (place) Engine(how);
    return lasting(only);
}

} // namespace hf
