// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object of an open pool: its working copy, its log, its two copies in the pool.  SIMPO §3.2
//
// (1) Calls are made on the working copy, behind the fence that made their group durable. The one
//     thread that holds the lock makes them: it combines what all threads have logged. Threads that
//     wait for the lock also make calls with hints (serving.hpp).
// (2) A checkpoint writes the copy that the resilient index does not name, then a fence, then the
//     index. No log line and no copy is reused before the index is durable.
// (3) A checkpoint skips a piece of a copy that already holds the right bytes, if it holds them
//     durably.
// (4) After any end but a clean close, positions advance by a whole log: what was logged and not
//     committed never counts.
// (5) An object that is swapped out has no memory, its log is closed, and all of it is in the file
//     that its head names. A thread that uses it first has its keeper bring it back, under the
//     lock.
// (6) Lock order: an object's lock, then its keeper's. The lock of an object that makes room for
//     another is only tried.
// (7) Where a history is kept, no log line is given back before its file has the calls.
#pragma once

#include <base/writer_lock.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <pool/forks.hpp>
#include <simpo/callers.hpp>
#include <simpo/history.hpp>
#include <simpo/log_array.hpp>
#include <simpo/serving.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace hf::simpo {

status corrupt(const pool_file& file, const std::string& what);

/// What is impossible in an object's head, apart from checks that depend on the pool; null:
/// nothing.
const char* wrong_in(const object_head& h) noexcept;
/// Bounds the fields of an object's head. Reads only. Errors: corrupt.
status check_head(const pool::impl& in, std::uint64_t offset);
/// Whether the copy that counts is as it was written. Reads all of it. Requires: check_head.
/// Errors: corrupt.
status check_copy(const pool::impl& in, std::uint64_t offset);
/// Whether this build can make every committed call again. Reads only. Errors: function_changed;
/// corrupt: a record that committed calls stand behind does not verify.
status check_log(const pool::impl& in, std::uint64_t offset);
/// Whether its history ends where the object has come. Reads only. Errors: corrupt: it ends
/// elsewhere, or is another one's; io_error.
status check_history(const pool::impl& in, std::uint64_t offset);
block block_of(const pool::impl& in, std::uint64_t offset);

namespace detail {

class core;

/// Owns the objects of a pool, and knows where swapped-out objects are.
class keeper {
public:
    /// Requires: the object's lock. Errors: why it cannot come back; it is as it was.
    virtual status bring_back(core& which) = 0;
    /// Notes that an object is used, if it matters and is news: the greatest number is that of the
    /// one which was used last.
    void note_use(std::atomic<std::uint64_t>& of) noexcept {
        const std::uint64_t last = uses_.load(std::memory_order_relaxed);
        if (last != 0 && of.load(std::memory_order_relaxed) != last)
            of.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

protected:
    ~keeper() = default;
    std::atomic<std::uint64_t> uses_{0}; // 0: it does not matter
};

/// A call for a caller.
struct one_call {
    const function* f;
    operation which;
    const std::uint64_t* arguments;
    std::uint64_t* result; // f->result_words
    bool all;              // its result must have a place beside the earlier ones
    status said;           // ok before the call
};

class core {
public:
    /// The object that 'head' describes: of the pool, or one that begin() will move there. Throws
    /// std::bad_alloc.
    core(pool::impl& in, keeper& of, object_head& head);

    /// Loads the resilient copy and makes the committed calls behind it again. Idempotent.
    /// 'done' counts groups. Errors: its history cannot be continued.
    status recover(engine_recovery& done);
    /// A new object, whose head is in the pool now, beside copy 0: that is the working copy.
    void begin(object_head& at) noexcept;

    void defer(const function& f, const std::uint64_t* arguments, std::uint16_t hint);
    void* begin_call(const function* f, const std::uint64_t* arguments);
    void end_call() noexcept;
    void sync();
    void checkpoint();

    // callers.hpp
    status add_caller(std::uint64_t id);
    status dismiss(std::uint64_t id);
    result<std::uint64_t> last_of(std::uint64_t id);
    void defer_once(const function& f, operation which, const std::uint64_t* arguments);
    /// Makes the calls, those that are new in one group if the log has room, and answers each.
    void call_all_once(std::span<one_call> calls);

    // past.cpp
    status keep_history(const compression* packing);
    status end_history();
    /// Its file and, from 'from' on, what was committed in the log; that may be in the file, too.
    /// Nothing: no history is kept.
    std::optional<history_file> copy_log(position& from, std::vector<record>& to);
    /// Upholds (7) for an object that leaves. Requires: close().
    status keep_all_calls();
    /// The history of an object that comes back goes on at 'anew'. Requires: its lock.
    status move_history(position anew);
    void remove_history() const noexcept {
        if (history_ != nullptr) history_->remove();
    }

    /// Commits all that is logged. False: another thread uses it.
    bool settle() noexcept;
    /// The pool is being closed: all that is logged is committed, and in the resilient copy.
    void settle_for_close() noexcept;

    /// Shows the object as it is when all that is logged is done; neither changes. For tests, of
    /// one thread.
    template <class Visit> void look(Visit&& visit);

    const object_head& head() const noexcept { return *head_; }
    std::string_view name() const noexcept { return head_->name; }
    void* working() const noexcept { return working_.get(); }
    const log_array& log() const noexcept { return log_; }
    /// Destroys the object: the rest serves handles that are still there.
    void end() noexcept;
    bool destroyed() const noexcept { return destroyed_; }

    /// Ends the process with a message if 'what' may not use it. Notes that it is used.
    void check_usable(const char* what) const {
        if (forked_ != forks::count() || destroyed_ || is_called_here() || any_section_here())
            [[unlikely]]
            refuse_use(what);
        keeper_->note_use(used_);
    }
    /// Brings it back if it is swapped out. Requires: check_usable. Errors: as of its keeper.
    status come_back();
    /// As long as it is there the object, if it is in the pool, stays.
    class pin {
    public:
        explicit pin(core& which) noexcept : pins_(which.pins_) { ++pins_; }
        ~pin() { --pins_; }
        pin(const pin&) = delete;

    private:
        std::atomic<unsigned>& pins_;
    };
    bool swapped() const noexcept { return swapped_.load(std::memory_order_acquire); }
    std::uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
    // For its keeper, under whose lock; what begins with a close() that is true ends with stay() or
    // leave().
    /// Takes the lock, commits and makes what is logged, and closes the log. False: it is used.
    bool close();
    /// Whether the object has not changed since it came back from the file that its head names.
    bool as_in_file() const noexcept { return came_at_ && *came_at_ == log_.done(); }
    void stay() noexcept;
    /// Leaves the pool: the object is in its file, and 'head' in the pool says so.
    void leave(object_head& head) noexcept;
    struct free_memory {
        void operator()(std::byte* memory) const noexcept;
    };
    /// The memory of an object besides the pool.
    struct room {
        std::unique_ptr<std::byte[], free_memory> working; // copy_bytes of them, zeros
        log_array::slots slots;
    };
    /// Throws std::bad_alloc.
    room new_room() const { return {new_memory(), log_.new_slots()}; }
    /// Comes back: the object is in 'in', and 'head' in the pool, beside copy 0. Requires: its
    /// lock.
    void come(object_head& head, room in) noexcept;

private:
    using memory = std::unique_ptr<std::byte[], free_memory>;
    struct held;
    memory new_memory() const;
    void be_here();
    hf::medium pm() const noexcept { return pool_->file->medium(); }
    std::byte* copy(unsigned which) const noexcept;
    void refuse_use(const char* what) const;
    bool is_called_here() const noexcept;
    void check_writable(const char* what) const;
    void wait_for_lock();
    void log_deferred(record_kind kind, const function& f, const std::uint64_t* arguments,
                      std::uint16_t hint, operation which);
    void commit(record_kind kind, const function* f, const std::uint64_t* arguments,
                operation which = {});
    void make_pending();
    void promise_done() noexcept;
    caller_table callers() const noexcept { return table_of(working_.get(), *head_); }
    status unknown_caller(std::uint64_t id);
    void join_group(const one_call& c);
    status keepable(const function& f, const caller_entry& by, operation which, bool all) const;
    status answer(const function& f, operation which, const std::uint64_t* arguments,
                  std::uint64_t* result) const;
    void replay(position end);
    status recover_history(position end, position anew);
    void forget_history();
    status keep_calls(position end, position to);
    void make_calls(position below);
    void serve();
    void make_resilient();
    void write_copy(unsigned which) noexcept;
    void store_resilient(position at, unsigned which) noexcept;

    pool::impl* pool_;
    object_head* head_;
    object_layout layout_;
    keeper* keeper_;
    memory working_;
    log_array log_;
    const unsigned forked_; // forks::count() in the process that opened the pool
    writer_lock lock_;
    std::atomic<std::uint64_t> owner_{0}; // of the lock: a thread's number
    std::atomic<bool> hinted_{false};     // a call has had a hint
    serving serving_;
    std::atomic<bool> swapped_;
    std::atomic<unsigned> pins_{0};
    mutable std::atomic<std::uint64_t> used_{0}; // when, last, as its keeper counts
    std::optional<position> came_at_;            // since when its file has it
    std::unique_ptr<history_file> history_;      // null: none is kept
    struct range {
        position from, end;
    };
    std::optional<range> left_; // the calls that recovery made, and a pool open read-only has yet
    bool owed_ =
        false; // a durable_together has committed calls, and nobody has waited for them since
    bool destroyed_ = false;
    unsigned resilient_;            // which copy
    std::array<bool, 2> durable_{}; // (3), by copy: what it holds survives
};

/// The lock, taken and given back.
struct core::held {
    explicit held(core& of) : of_(of) {
        if (!of.lock_.try_lock()) [[unlikely]]
            of.wait_for_lock();
        of.owner_.store(writer_lock::thread_number(), std::memory_order_relaxed);
    }
    /// For a lock that has been taken already.
    held(core& of, std::adopt_lock_t) : of_(of) {
        of.owner_.store(writer_lock::thread_number(), std::memory_order_relaxed);
    }
    ~held() {
        if (kept_) return;
        of_.owner_.store(0, std::memory_order_relaxed);
        of_.lock_.unlock();
    }
    held(const held&) = delete;
    /// For a caller that gives the lock back itself.
    void keep() noexcept { kept_ = true; }

private:
    core& of_;
    bool kept_ = false;
};

template <class Visit> void core::look(Visit&& visit) {
    const memory shown = new_memory();
    std::memcpy(shown.get(), working_.get(), layout_.copy_bytes);
    record room;
    for (position p = log_.done(); p < log_.head();) {
        const auto [r, f, next] = log_.call_at(p, room);
        make_call(shown.get(), *head_, r, f);
        p = next;
    }
    visit(static_cast<const void*>(shown.get()));
}

} // namespace detail
} // namespace hf::simpo
