// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A failure-atomic section in progress on one thread: its log, its blocks, the lines it dirtied.
// What engines share; how a section begins, commits and is recovered is the engine's.
//
// (1) No in-place store to PM before every record appended so far is durable; the fence is taken
//     when such a store comes, so records that come together share one.
// (2) The heap's durable state changes only in commit, after the records that name the blocks are
//     durable and before the commit mark is stored.
// (3) commit_marks.hpp (1).
// (4) commit_marks.hpp (2).
// (5) Bytes filled in before a section (note_filled) are logged before the section changes them:
//     recovery compares them, as they were, with their sum.
//     Between sections nothing else may change them, nor anything that a section read or stored
//     whose mark is due: hf::settle comes first. Debug builds and the crash checker look. Calls of the library that
//     store outside of sections settle those marks themselves, of any lane, but in a block that was staged since.
// (6) commit_marks.hpp (6).
// (7) In an engine that logs inputs the old bytes of whatever is overwritten in place and was not
//     read before are in the log ahead of the store, in program order and without a fence: only rolling back
//     needs them (roll_back.hpp). Where the log has no room for them it says so.
// (8) Of an engine that defers stores nothing is stored in place, but to memory of the section's own,
//     before the log that says what is durable, and whole. It is written at the commit, begin record
//     and all: a section that ends without one has never been. Of that memory, and of bytes filled in
//     before, the log has sums, which tell whether the fence was passed that all of them share.
//     So until its log is whole such a section can end as if it had never begun (abort.cpp).
// (9) Such a log may stand for the section's stores (commit_marks.hpp, 3): its lane's next log is durable under the fence
//     that they are flushed for, by the next section, and until that next log is written over, recovery
//     replays this one before it.
// (10) commit_marks.hpp (4), (5).
// (11) A section of engine undo may leave its stores to the first fence of its thread's next section
//     (open_options::sections), while (4) lets marks be left out. Without that fence it is rolled back, behind the
//     next one, and a power failure has taken what had returned. Whether the fence was passed the stores
//     themselves tell: their sum is in the next section's begin record (lane.hpp, 7). So its memory goes to
//     others one section later, as in (9); and of two sections that may be rolled back neither is another thread's.
// (12) A store that needs no log waits for no record but the begin record that stands for the mark of the
//     section before (4): until that is durable, that section may be run again, and read what is stored.
#pragma once

#include <base/assert.hpp>
#include <log/flush_set.hpp>
#include <log/lane.hpp>
#include <log/logged_words.hpp>
#include <open/pool_impl.hpp>
#include <section/commit_marks.hpp>
#include <section/prepared_memory.hpp>
#include <section/section_blocks.hpp>
#include <section/stored_ranges.hpp>
#include <section/volatile_copies.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace hf {

/// What the log of a section that recovery runs again holds of its first run: the section asks it
/// where a first run goes on by itself (clobber/re_execution.hpp).
class first_run {
public:
    /// The section has called the runtime. It does not return when the run is to stop.
    virtual void entered() const noexcept = 0;
    /// The section is about to store there; 'fresh': to memory of its own.
    virtual void stores(std::uint64_t offset, std::uint64_t bytes, bool fresh) = 0;
    /// Whether the first run has logged all of these old bytes: as inputs; or as anything.
    virtual bool logged(std::uint64_t offset, std::uint64_t bytes) const noexcept = 0;
    virtual bool kept(std::uint64_t offset, std::uint64_t bytes) const noexcept = 0;
    /// Whether it has logged that the block is freed.
    virtual bool freed(std::uint64_t offset) const noexcept = 0;
    /// The block that it was given here, of so many bytes; offset 0: there was no room. None: it
    /// had not come so far.
    virtual std::optional<block> next_block(std::uint64_t bytes) = 0;
    /// The bytes that it preserved here. Does not return when it had not come so far.
    virtual const void* next_preserved(std::uint64_t bytes) = 0;
    /// Ends the run as if the section had never begun, if that is possible still; else returns.
    virtual void give_up() = 0;

protected:
    ~first_run() = default;
};

class section {
public:
    /// 'turns': held while a section is open, on a lane that threads share; else null.
    section(hf::pool::impl& pool, std::uint32_t lane, thread_cache& cache,
            std::mutex* turns = nullptr);
    ~section();
    section(const section&) = delete;
    section& operator=(const section&) = delete;

    /// Opens the lane's next section. 'args' may be null when recovery needs none.
    void begin(const engine_row& engine, const hf_txfunc& function, const void* args,
               std::uint64_t args_bytes);
    /// Takes up a pending section so that its function can be re-executed; 'first', which outlives
    /// that, tells what is in its log already.
    void take_up(const pending_section& from, first_run& first);

    void note_store(const void* address, std::uint64_t bytes);
    /// The old bytes are in the log, durable, when it returns; also notes the store.
    void log_old_bytes(const void* address, std::uint64_t bytes);
    /// The old bytes are in the log, and durable before the section's next store in place: one of
    /// these bytes, each of which the section will store to. Notes nothing.
    void log_ahead(const void* address, std::uint64_t bytes);
    /// Whether the engine takes the program's word for what needs no log (holdfast/selective.hpp).
    bool selects() const noexcept { return engine_->sections == engine_sections::selected; }
    /// Stores are to come that need no log (12); lazy ones need not be durable at the commit either.
    void note_log_free(const void* address, std::uint64_t bytes);
    void note_lazy(const void* address, std::uint64_t bytes);
    static constexpr std::size_t lazy_lines_max = 64; // of a lane, behind a commit
    void* alloc(std::uint64_t bytes);
    void free(void* given);
    void adopt(void* staged_block);
    const void* preserve(const void* volatile_bytes, std::uint64_t bytes);

    /// What the thread has made before a section (5).
    prepared_memory& prepared() noexcept { return prepared_; }
    /// Outside of sections: whether the bytes lie in a block that was staged since the last one. No log names it.
    bool staged_since(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return prepared_.staged_since(epoch_, offset, bytes);
    }
    void add_staged(block b) { prepared_.staged().push_back({b, epoch_}); }

    // An engine whose stores wait for the commit calls these in this order (8).
    /// Offset from pool start of a store that is to wait. 'outside': it leads to volatile memory, or
    /// to memory of the section's own, and is made at once; the latter is noted.
    std::uint64_t defer(const void* address, std::uint64_t bytes);
    /// For each of these stores: an ordering point or two, where another thread's log stands for what is there (9).
    void settle_under(std::uint64_t offset, std::uint64_t bytes) {
        const auto first = reinterpret_cast<std::uintptr_t>(base_) + offset;
        pool_->lanes.settle_under(first, first + bytes, marks_.lane());
    }
    bool changes_blocks() const noexcept { return blocks_.change_heap(); }
    /// Logs that the section began, and what becomes of its blocks, with the sums of its own memory. An
    /// ordering point, where there is much of that, or bytes with sums are about to change.
    void log_blocks();
    /// Deferred stores; in several calls, of which one is the 'last'.
    void log_new_bytes(const void* stores, std::uint64_t bytes, bool last);
    /// An ordering point: the log and the section's own memory are durable.
    void make_log_durable();
    /// So many granules from 'offset' on are about to be stored whole.
    void note_deferred(std::uint64_t offset, std::uint64_t granules);
    /// Makes a deferred store: of the granule at 'offset' the bytes in 'mask'. The commit flushes it. A whole
    /// granule has been noted.
    void store_deferred(deferred_store where, const std::byte* granule);
    /// Ends it as if it had never begun, before its log is whole. Ordering points only if that has been begun.
    void abort();
    /// It goes on, and is to end by abort(). A request hides that there was no room: its author wants no
    /// error of a section that was not to happen.
    enum class doomed_by : std::uint8_t { nothing, request, no_room };
    void doom(doomed_by why) noexcept {
        if (doomed_ != doomed_by::request) doomed_ = why;
    }
    doomed_by doomed() const noexcept { return doomed_; }

    /// Publishes blocks, makes all stores durable, stores the commit mark. eager: the mark is
    /// durable when it returns; otherwise it may be left to the next section's begin record (4), and
    /// so may the fence (9).
    void commit(bool eager_mark);
    /// Ends a section that was taken up and has stored nothing in place, as if it had never begun.
    /// 'untaken': blocks of its log that it has not come to.
    void discard(std::span<const block> untaken);
    /// The function cannot go on without room: the first run decides whether this one ends here.
    void give_up() {
        if (first_ != nullptr) first_->give_up();
    }
    /// What it has freed it keeps, and its stores are on their way to PM: it will be discarded.
    void forsake();
    /// Ends the process: a section that cannot report it has no room for its log. 'then': what becomes of it.
    [[noreturn]] void no_room_for_log(const char* then) const;
    /// Makes a mark that was left out durable (a thread leaves, a staged block is given back).
    void settle_mark();
    /// The thread uses the pool no more.
    void leave();
    /// Outside of sections the block is about to change hands (lane.hpp, 6): held until it has.
    [[nodiscard]] std::unique_lock<std::mutex> at_once(block b);

    /// A copy of the bytes, which no store changes, until the next section begins.
    const void* keep(const void* bytes, std::uint64_t count) { return copies_.keep(bytes, count); }

    /// Whether nothing of a section is under way: before begin(), and after commit() or discard().
    bool idle() const noexcept;
    /// Whether a section is under way, and its begin record in the lane.
    bool running() const noexcept;

    const engine_row& engine() const noexcept {
        HF_ASSERT_SLOW(engine_ != nullptr);
        return *engine_;
    }
    hf::pool::impl& pool() const noexcept { return *pool_; }
    const hf_txfunc* function() const noexcept { return function_; }

    static constexpr std::uint64_t outside = ~std::uint64_t{0};

private:
    /// Whether what idle and running sections have in common holds: marks, epochs, freed blocks.
    bool valid() const noexcept;
    bool buffered() const noexcept { return engine_->sections == engine_sections::buffered; }
    void start_log(const void* args, std::uint64_t args_bytes);
    bool begins_where_left(const engine_row& next);
    void end_unlogged();
    bool may_leave_stores() const noexcept;
    bool may_leave_to_next();
    void leave_sums();
    void leave_stores(std::size_t deferred);
    void store_to_own(const void* address, std::uint64_t bytes);
    void append(record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                const void* payload = nullptr);
    bool extend(std::uint64_t payload_bytes);
    bool extend_if_room(std::uint64_t payload_bytes, purpose what);
    bool may_store_unlogged(std::uint64_t offset, std::uint64_t bytes);
    void keep_overwritten(const void* address, std::uint64_t offset, std::uint64_t bytes);
    bool already_kept(std::uint64_t offset, std::uint64_t bytes);
    void before_in_place_store();
    void will_store(const void* address, std::uint64_t bytes);
    void fence();
    void store_mark();
    void append_staged(std::size_t sums);
    void check_left() const noexcept;
    bool fresh(std::uint64_t offset) const noexcept;
    bool already_logged(std::uint64_t offset, std::uint64_t bytes);
    void append_old_bytes(const void* address, std::uint64_t offset, std::uint64_t bytes);
    std::uint64_t checked_offset(const void* address, std::uint64_t bytes) const;
    std::uint64_t far_offset(const void* address, std::uint64_t offset, std::uint64_t bytes) const;
    void log_adopted(block b, bool with_sums);
    void publish_blocks();
    void settle_blocks();

    hf::pool::impl* pool_;
    thread_cache* cache_;
    std::mutex* turns_;
    commit_marks marks_;
    hf::medium medium_;
    std::byte* base_;
    std::uint64_t range_bytes_; // of the pool's address range; 0 in a re-execution

    const hf_txfunc* function_ = nullptr;
    const engine_row* engine_ = nullptr;
    lane_writer log_;
    std::uint64_t epoch_ = 0; // of this section
    bool relocated_ = false;  // the pool is
    bool log_begun_ = false;  // the begin record is in the lane
    bool refilled_ = false;   // a deferred store leads to bytes that have one
    bool unfenced_ = false;   // records appended since the last fence
    bool stored_ = false;     // something was stored to PM
    doomed_by doomed_ = doomed_by::nothing;
    bool summing_ = false;    // this one may (11)
    left_payload left_log_{}; // of the section before, if its stores are left (11)
    flush_set dirty_;
    logged_ranges logged_;     // as old_bytes
    logged_words overwritten_; // as overwritten
    kept_ranges overwritten_long_;
    bool keeping_ = false; // what is overwritten (7)
    section_blocks blocks_;
    prepared_memory prepared_; // outside and inside sections
    volatile_copies copies_;
    first_run* first_ = nullptr; // of a section that runs again
    // In debug builds and under the crash checker: what the last section, whose mark is due, left
    // of the inputs that it overwrote. Of one that may leave its stores (11), always: of them and its blocks.
    stored_ranges left_;
};

/// Offset of a store's target; 'outside' when it is volatile memory.
inline std::uint64_t section::checked_offset(const void* address, std::uint64_t bytes) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    return offset < range_bytes_ ? offset : far_offset(address, offset, bytes);
}

inline std::uint64_t section::defer(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return outside;
    if (blocks_.taken().covers(offset)) {
        store_to_own(address, bytes);
        return outside;
    }
    refilled_ = refilled_ || prepared_.in_filled(offset, bytes);
    return offset;
}

inline void section::will_store(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(bytes != 0);
    HF_ASSERT_SLOW(pool_->contains(address));
    stored_ = true;
    persist::thread_counters().pm_bytes += bytes;
    trace::announce(trace::store, address, bytes);
    // Where nothing need be flushed, too: other threads are told of lines (9).
    if (!medium_.keeps_order()) dirty_.add(address, bytes);
}

/// Adds 'by' to every pool pointer among packed arguments that is not null.
void shift_pointers(const hf_txfunc& function, std::byte* args, std::uint64_t by) noexcept;

/// The section open on this thread, or null.
extern constinit thread_local section* current_section __attribute__((tls_model("initial-exec")));

/// Says whose section is open on this thread that is in no lane, and resumes: the name of its function, or null.
/// No other engine's can be a part of it: that one would have happened, and be made again by whoever resumes. Set by
/// the engine that has such sections; null: there is none.
extern constinit std::atomic<const char* (*)() noexcept> resumes_here;

/// The section on this thread has ended: its caller may be promised what it has made durable.
inline void leave_section() noexcept {
    const hf::medium pm = current_section->pool().file->medium();
    current_section = nullptr;
    pm.end_group();
}

/// Opens a section of 'engine' for 'function', or joins the one that is open; 1 when it opened one.
int begin_section(const engine_row& engine, const hf_txfunc& function, const void* args,
                  std::uint64_t args_bytes);

} // namespace hf
