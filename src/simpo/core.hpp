// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object of an open pool: its working copy, its log, its two copies in the pool.  SIMPO §3.2
//
// (1) Calls are made on the working copy, behind the fence that made their group durable, by the one
//     thread that holds the lock: it combines what all threads have logged. Calls with hints are made by
//     threads that wait for the lock, too (serving.hpp).
// (2) A checkpoint writes the copy that the resilient index does not name, and the index behind the fence of
//     that. Nothing is reused (log lines, the other copy) before the index is durable.
// (3) A piece of a copy that already holds the right bytes is left out, if it holds them durably.
// (4) After an end that was no clean close, positions go on a whole log further: what was logged and not
//     committed never counts.
#pragma once

#include <open/pool_impl.hpp>
#include <simpo/callers.hpp>
#include <simpo/log_array.hpp>
#include <simpo/serving.hpp>

#include <array>
#include <mutex>
#include <thread>

namespace hf::simpo {

status corrupt(const pool_file& file, const std::string& what);

/// What of an object's head cannot be, but for what depends on the pool; null: nothing.
const char* wrong_in(const object_head& h) noexcept;
/// Bounds what an object's head says. Reads only. Errors: corrupt.
status check_head(const pool::impl& in, std::uint64_t offset);
/// Whether the copy that counts is as it was written. Reads all of it. Requires: check_head. Errors: corrupt.
status check_copy(const pool::impl& in, std::uint64_t offset);
/// Whether this build can make every committed call again. Reads only. Errors: function_changed; corrupt: a record
/// that committed calls stand behind does not verify.
status check_log(const pool::impl& in, std::uint64_t offset);
block block_of(const pool::impl& in, std::uint64_t offset);

namespace detail {

class core {
public:
    /// The object that 'head' describes: of the pool, or one that begin() will move there. Throws
    /// std::bad_alloc.
    core(pool::impl& in, object_head& head);

    /// Loads the resilient copy and makes the committed calls behind it again. Idempotent.
    /// 'done' counts groups.
    void recover(engine_recovery& done);
    /// A new object, whose head is in the pool now, beside copy 0: that is the working copy.
    void begin(object_head& at) noexcept;

    void defer(const function& f, const std::uint64_t* arguments, std::uint16_t hint);
    void call(const function* f, const std::uint64_t* arguments, body run, void* context);
    void sync();
    void checkpoint();

    // callers.hpp
    status add_caller(std::uint64_t id);
    status dismiss(std::uint64_t id);
    result<std::uint64_t> last_of(std::uint64_t id);
    void defer_once(const function& f, operation which, const std::uint64_t* arguments);
    status call_once(const function& f, operation which, const std::uint64_t* arguments, bool all,
                     std::uint64_t* result);
    /// The pool is being closed: all that is logged is committed, and in the resilient copy.
    void settle() noexcept;

    /// Shows the object as it is when all that is logged is done; neither changes. For tests, of one thread.
    template <class Visit> void look(Visit&& visit);

    const object_head& head() const noexcept { return *head_; }
    std::string_view name() const noexcept { return head_->name; }
    void* working() const noexcept { return working_.get(); }
    const log_array& log() const noexcept { return log_; }
    /// The object is destroyed: what is left is for handles that are still there.
    void end() noexcept;
    bool destroyed() const noexcept { return destroyed_; }

private:
    struct held; // the lock, taken and given back
    hf::medium pm() const noexcept { return pool_->file->medium(); }
    std::byte* copy(unsigned which) const noexcept;
    void check_usable(const char* what) const;
    void check_writable(const char* what) const;
    void take_lock();
    void log_deferred(record_kind kind, const function& f, const std::uint64_t* arguments,
                      std::uint16_t hint, operation which);
    position commit(record_kind kind, const function* f, const std::uint64_t* arguments,
                    operation which = {});
    void make_pending();
    caller_table callers() const noexcept { return table_of(working_.get(), *head_); }
    status unknown_caller(std::uint64_t id) const;
    status keepable(const function& f, const caller_entry& by, operation which, bool all) const;
    status answer(const function& f, operation which, const std::uint64_t* arguments,
                  std::uint64_t* result) const;
    void replay(position end);
    void make_calls(position below);
    void serve();
    void make_resilient();
    void write_copy(unsigned which) noexcept;
    void store_resilient(position at, unsigned which) noexcept;
    bool all_done() const noexcept { return log_.done() == log_.head(); }

    pool::impl* pool_;
    object_head* head_;
    object_layout layout_;
    struct free_memory {
        void operator()(std::byte* memory) const noexcept;
    };
    std::unique_ptr<std::byte[], free_memory> working_; // copy_bytes of them
    log_array log_;
    std::mutex lock_;
    std::atomic<std::thread::id> owner_{}; // of the lock
    std::atomic<bool> hinted_{false};      // a call has had a hint
    serving serving_;
    bool destroyed_ = false;
    unsigned resilient_;            // which copy
    std::array<bool, 2> durable_{}; // (3), by copy: what it holds survives
};

template <class Visit> void core::look(Visit&& visit) {
    std::unique_ptr<std::byte[], free_memory> shown(
        static_cast<std::byte*>(::operator new(layout_.copy_bytes, std::align_val_t{line_bytes})));
    std::memcpy(shown.get(), working_.get(), layout_.copy_bytes);
    record r;
    for (position p = log_.done(), next = p; p < log_.head(); p = next) {
        const function* const f = log_.call_at(p, r, next);
        make_call(shown.get(), table_of(shown.get(), *head_), r, f);
    }
    visit(static_cast<const void*>(shown.get()));
}

} // namespace detail
} // namespace hf::simpo
