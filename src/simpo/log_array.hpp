// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object's log: an array of lines, used in a circle, with four cursors.  SIMPO §3.1.2, Fig. 3
//
//        tail            checkpointed          done                   head
//   free  │   RESILIENT        │      DONE       │         NEW          │  free
//
// (1) A record is written only to lines below tail + lines: no failure needs those any more.
// (2) A record is published behind its last byte; a thread that commits waits for everything
//     reserved below. Its own instant record needs no slot: nobody else asks for it.
// (3) Lines below 'done' are durable. The calls behind 'done' are made in order; then 'done' passes
//     them.
// (4) tail <= checkpointed <= done <= head. The first three move under the object's lock, 'head'
//     without any lock.
// (5) Deferred calls leave room for one more record: the one that ends their group.
// (6) In a closed log everything is done, and it takes nothing: a thread that wants to log finds no
//     room.
// (7) In a medium that keeps order a commit stores the head's 'logged' behind all records below
//     it. A killed process leaves its stores in program order, and those of another thread that it
//     has seen. So these records have no checks, and a commit flushes and waits for nothing.
//
// Cursors are volatile: positions in records, their checks, 'logged' and the resilient index
// contain the same.
#pragma once

#include <base/assert.hpp>
#include <pool/medium.hpp>
#include <simpo/format.hpp>

#include <holdfast/simpo.hpp>

#include <atomic>
#include <memory>
#include <optional>

namespace hf::simpo {

enum class record_state : std::uint8_t { fresh, done, resilient }; // NEW, DONE, RESILIENT

class log_array {
public:
    /// The log of the object that 'head' describes. Begins closed, or empty, at the resilient
    /// index. Throws std::bad_alloc.
    log_array(hf::medium pm, object_head& head, bool closed);

    const std::byte* lines() const noexcept { return at_; }
    position head() const noexcept { return head_.load(std::memory_order_acquire) & ~closed_bit; }
    position done() const noexcept { return done_.load(std::memory_order_relaxed); }
    /// Whether nothing is logged that is not done. Requires: the object's lock.
    bool all_done() const noexcept { return head() == done(); }
    position tail() const noexcept { return tail_.load(std::memory_order_acquire); }
    /// Whether it is time for a checkpoint. Requires: the object's lock.
    bool half_full() const noexcept { return done() - tail() >= lines_ / 2; }
    /// Whether it is time for a thread to serve: the other threads have a quarter left meanwhile.
    bool crowded() const noexcept { return head() - tail() >= lines_ / 4 * 3; }
    record_state state_of(position p) const noexcept {
        return p >= done()          ? record_state::fresh
               : p >= checkpointed_ ? record_state::done
                                    : record_state::resilient;
    }
    bool valid() const noexcept {
        return tail() <= checkpointed_ && checkpointed_ <= done() && done() <= head() &&
               head() - tail() <= lines_;
    }

    /// Logs a call; nothing when there is no room for it. Lock-free; flushes nothing. 'hint': of
    /// deferred calls (serving.hpp); it is not in the record. 'which': of kinds that have one.
    std::optional<position> append(record_kind kind, const detail::function* what,
                                   const std::uint64_t* arguments, std::uint16_t hint = 0,
                                   operation which = {}) noexcept;
    /// Everything below 'end' is durable on return. 'mine': where this thread's own record begins,
    /// which ends there and may have no slot. 1 ordering point. Requires: the object's lock.
    void commit(position mine, position end) const noexcept;
    struct logged_call {
        const record& what; // there, or in the room that was given
        const detail::function* function;
        position next;
    };
    /// The call at 'at', which is published. 'room' is for one that goes round the log's end.
    logged_call call_at(position at, record& room) const noexcept;
    struct glimpse {
        std::uint16_t hint;
        position next;
    };
    /// The same without its record.
    glimpse glance(position at) const noexcept;
    /// Queues of calls, of the thread that serves: 'to', which is above, is behind 'from'; what is
    /// behind it.
    void link(position from, position to) const noexcept;
    std::optional<position> linked(position from) const noexcept;
    /// Calls below have been made. Requires: they are committed.
    void set_done(position below) noexcept {
        HF_ASSERT(done() <= below && below <= head());
        done_.store(below, std::memory_order_relaxed);
    }
    /// The object is durable as calls below left it: truncates the log. Requires: resilient index
    /// durable.
    void set_resilient(position below) noexcept;

    /// Moves with the object's head, before anything is logged.
    void lie_with(object_head& head) noexcept;
    /// Nothing is logged any more.
    void end() noexcept { slots_.reset(); }
    /// False: something is logged that is not done. Requires, as the two below: the object's lock.
    bool close() noexcept {
        position all_done = done();
        return head_.compare_exchange_strong(all_done, done() | closed_bit); // upholds (6)
    }
    /// Undoes close().
    void reopen() noexcept { head_.store(done(), std::memory_order_release); }
    struct slot;
    using slots = std::unique_ptr<slot[]>;
    /// Throws std::bad_alloc.
    slots new_slots() const;
    /// A closed one begins anew, empty, at 'start', beside another head.
    void reopen(object_head& head, position start, slots with) noexcept;
    /// Makes the lines zeros, durably. In a torn pool there may be records of later moments than
    /// the index, which would count at positions that are still to come. Requires: no record
    /// counts, and the index says so.
    void erase() noexcept;
    /// Begins empty there, before anything is logged.
    void start_at(position at) noexcept { head_ = tail_ = done_ = checkpointed_ = at; }

    /// Reads a log that was left, of the object that 'head' describes; false if there is no record
    /// there. (3) of format.hpp.
    static bool read(const std::byte* lines_at, const object_head& head, position logged,
                     position at, record& out) noexcept;

private:
    static constexpr position closed_bit = position{1} << 63; // of head_
    record* line_at(position at) const noexcept {
        return reinterpret_cast<record*>(at_ + (at & (lines_ - 1)) * line_bytes);
    }
    bool goes_round(position at, std::uint64_t lines) const noexcept {
        return (at & (lines_ - 1)) + lines > lines_;
    }
    slot& slot_of(position at) const noexcept;
    std::optional<position> reserve(std::uint64_t count, std::uint64_t left_free) noexcept;
    void make_record(record& r, const record_head& head, const std::uint64_t* arguments,
                     operation which) const noexcept;
    void make_round(const record_head& head, const std::uint64_t* arguments,
                    operation which) noexcept;
    /// Calls visit(address, bytes from 'from', bytes) for each contiguous piece of [from, to).
    template <class Visit> void for_each_piece(position from, position to, Visit&& visit) const;
    void wait_until_published(position below) const noexcept;

    hf::medium pm_;
    const std::uint64_t lines_, salt_;
    object_head* object_;
    std::byte* at_;
    slots slots_;
    std::atomic<position> head_, tail_;
    std::atomic<position> done_; // stored under the lock
    position checkpointed_;
};

struct log_array::slot {                // of a record's first line
    std::atomic<position> published{0}; // its position + 1
    const detail::function* what = nullptr;
    std::uint16_t hint = 0;
    std::uint8_t lines = 0;
    std::uint32_t behind =
        0; // lines to the next record of its queue (serving.hpp); 0: it is the last
};

inline log_array::slot& log_array::slot_of(position at) const noexcept {
    return slots_[at & (lines_ - 1)];
}
inline void log_array::link(position from, position to) const noexcept {
    slot_of(from).behind = static_cast<std::uint32_t>(to - from);
}
inline std::optional<position> log_array::linked(position from) const noexcept {
    const std::uint32_t behind = slot_of(from).behind;
    return behind == 0 ? std::nullopt : std::optional(from + behind);
}

} // namespace hf::simpo
