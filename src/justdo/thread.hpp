// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's log, lock log and frames, and the steps that move it through its sections.  JUSTDO §5
//
// (1) All that resumption at a program counter reads, or takes for done, is durable before that
//     program counter can be: data of earlier steps, frames, stores that the function has noted.
//     One exception: the last store, or the last change of the lock log. Recovery makes it again,
//     because the entry says so.
// (2) An entry is durable, and active, before its action is done.
// (3) Other threads see nothing of a section in a lock before it is durable. A section's stores are
//     durable before it releases a lock; the record that it no longer owns the lock is, too. The
//     last release ends the section.
// (4) In the log a lock is owned only while it is held. It is intended before it may be held and
//     until it is durably free.
// (5) A freed block belongs to nobody until the entry that frees it is no longer active: otherwise
//     repeating the entry would free the block under its new owner.
//
// Where the medium keeps order nothing is waited for, and no store is torn:
// (6) A step that only stores a word, or nothing, is plain stores in the order of (2), which
//     compiled code makes in line (hf_justdo_steps). What it writes of its entry is what its action
//     reads.
// (7) The first lock is owned in the log before the section is open: until then that means nothing.
//
// Differs: one ordering point a store, where the paper's order needs two (1); locks that free
//          themselves, as generations do, are not intended; an allocation is an entry, and its
//          result a store of that entry.
#pragma once

#include <alloc/allocator.hpp>
#include <justdo/format.hpp>
#include <justdo/registered.hpp>
#include <justdo/room.hpp>
#include <open/pool_impl.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hf::justdo {

/// The sections that resume together (resume.hpp), as one of them sees them.
class party {
public:
    virtual ~party() = default;
    /// The thread cannot go on before another one has.
    virtual void wait() = 0;
    /// Reports that the thread does a step, at these bytes of the pool (or at none), or has got a
    /// lock. Does not return if a section may not change these bytes.
    virtual void progressed(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;
    /// Reports that the thread's section has ended; the rest of its function does not matter.
    [[noreturn]] virtual void finished() noexcept = 0;
};

class thread;
/// The thread whose functions are running here; null: none.
extern constinit thread_local thread* current __attribute__((tls_model("initial-exec")));

class thread {
public:
    thread(pool::impl& in, std::uint64_t offset, std::uint64_t bytes);

    std::uint64_t offset() const noexcept { return pool_->offset_of(block_); }
    bool open() const noexcept { return open_; }
    bool contains(const void* address) const noexcept {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_) <
               pool_bytes_;
    }
    const hf_justdo_function* function() const noexcept {
        return frames_.empty() ? nullptr : frames_.back().function;
    }

    // The calls of justdo_abi.h.
    void* enter(const hf_justdo_function& function, std::uint32_t& resumed);
    void check_argument(const void* pointer, std::uint32_t number) const noexcept {
        if (pointer != nullptr && !contains(pointer)) [[unlikely]]
            leads_elsewhere(pointer, number);
    }
    void leave() noexcept;
    void call(std::uint32_t place);
    void note(const void* address, std::uint64_t bytes);
    void move_to(std::uint32_t place);
    void store(void* address, std::uint64_t value, std::uint32_t bytes, std::uint32_t place);
    void copy(void* to, const void* from, std::uint64_t bytes, std::uint32_t place);
    void fill(void* to, int byte, std::uint64_t bytes, std::uint32_t place);
    void* alloc(std::uint64_t bytes, void** slot, std::uint32_t place);
    void free(void* given, std::uint32_t place);
    bool lock(void* lock, std::uint32_t kind, std::uint32_t place, bool wait);
    void unlock(void* lock, std::uint32_t kind, std::uint32_t place);
    /// The same where a section begins, or ends, in a medium that keeps order, with no lock. False:
    /// something else is asked for, and nothing is done.
    bool begin_without_lock(std::uint32_t kind, std::uint32_t place) noexcept;
    bool end_without_lock(std::uint32_t kind) noexcept;

    /// Nobody's any more: the blocks at hand go back.
    void retire() noexcept { pool_->blocks.release_all(cache_); }

    // Recovery. Requires: the block's contents are sound (inspect.hpp). Idempotent, until it
    // resumes.
    /// The blocks that its own has grown by.
    template <class Visit> void for_each_block(Visit&& visit) const {
        for (const std::vector<more_head*>* chain : {&locks_, &stack_})
            for (const more_head* head : *chain) visit(block{pool_->offset_of(head), head->bytes});
    }
    /// Whether its log shows that a section was cut short.
    bool pending() const noexcept { return program_counter{block_->log.counter}.open(); }
    /// The block that the section's last step takes, or frees; {0, 0}: none, or no block of the
    /// heap.
    block held() const noexcept;
    /// Allocates the block that is taken, and claims the one that is freed. Durable with the next
    /// fence.
    /// Requires: believe(), durably. Errors: corrupt.
    status settle_held();
    /// Leaves that section unfinished.
    void give_up() noexcept;
    /// The same, and nothing is believed of the blocks that its own has grown by.
    void give_up_growth() noexcept;
    /// Writes the log back: a killed process may only have stored it. Durable with the next fence,
    /// which comes before anything that builds on it. 'frames': those of an open section, too, as
    /// far as inspect() has looked at them.
    void believe(bool frames);
    /// Repeats the log's own changes; durable with the next fence. Requires: settle_held(). Errors:
    /// corrupt.
    status take_up();
    /// Makes every lock free that the thread may have held; durable with the next fence. A lock of
    /// a kind that this program does not have waits for the next open: only a repair meets one
    /// here.
    void reset_locks();
    /// Clears intentions of locks that are not owned, except one that waits. Requires: those locks
    /// are free, durably.
    void forget_intentions();
    /// Whether it holds a lock until it ends. Requires: take_up().
    bool is_guarded() const noexcept {
        return place_of(lock_word(HF_JUSTDO_NO_LOCK, 0)) == no_place;
    }
    /// Takes the locks that the section owned.
    void own_again(party& with);
    /// Releases the locks that it has taken again, or took when it was resumed: its section is
    /// given up, and no other section has taken any yet.
    void free_locks() noexcept;
    /// Does the rest of the last step again, and goes on in its functions, to the end of the
    /// section.
    [[noreturn]] void resume();
    /// After it, on any thread.
    void resumed() noexcept;

private:
    struct frame {
        const hf_justdo_function* function;
        std::uint64_t offset; // of its head, from pool start
        std::uint64_t end;    // of the block that it lies in
        std::uint64_t block;  // which of 'stack_' that is, from 1; 0: the thread's own
    };

    frame_head& head_of(const frame& f) const noexcept {
        return *reinterpret_cast<frame_head*>(base_ + f.offset);
    }
    frame above(const frame& below) const noexcept;

    // For the case that the block has no room (room.cpp).
    void load_chains();
    void load_more_places();
    bool grow(std::vector<more_head*>& chain, std::uint64_t& first, std::uint64_t magic,
              std::uint64_t bytes);
    unsigned free_far_place();
    frame frame_in_more(const hf_justdo_function& function, std::uint64_t bytes);
    frame first_in(std::uint64_t block) const noexcept;
    std::string where_it_stays() const;
    [[noreturn]] void no_room_for_lock(const void* lock) const;
    [[noreturn]] void no_room_for_frame(const hf_justdo_function& function,
                                        std::uint64_t bytes) const;

    std::uint64_t in_pool(const void* address, std::uint64_t bytes,
                          const char* call) const noexcept;
    void goes_on(std::uint64_t offset, std::uint64_t bytes) noexcept;
    void* enter_again(const hf_justdo_function& function, std::uint32_t& resumed);
    void* enter_inside(const hf_justdo_function& function, std::uint64_t bytes,
                       std::uint32_t& resumed);
    void* begin_frame(frame_head& head, const hf_justdo_function& function, std::uint64_t bytes,
                      std::uint32_t& resumed) noexcept;
    [[noreturn]] void leads_elsewhere(const void* pointer, std::uint32_t number) const noexcept;
    [[noreturn]] void leaves_open() const noexcept;
    unsigned active() const noexcept { return program_counter{block_->log.counter}.active(); }
    std::uint64_t logged_depth() const noexcept {
        return program_counter{block_->log.counter}.depth();
    }
    void show_steps() noexcept;
    bool others_are_due() const noexcept;
    void settle_others();
    void begin_in_order(lock_place& log, std::uint64_t word, std::uint32_t place) noexcept;
    void step_in_order(const log_entry& entry, std::uint32_t place) noexcept;
    bool at_point() const noexcept;
    [[noreturn]] void outside(const void* address, const char* call) const noexcept;
    void step(log_entry entry, std::uint32_t place);
    void settle() noexcept;
    void dirty(const void* address, std::uint64_t bytes) noexcept;
    void redo(const log_entry& entry, bool own_log);
    void do_store(const log_entry& entry) noexcept;
    void move(std::uint64_t to, move_rest rest, std::uint32_t place);
    void do_alloc(const log_entry& entry);
    unsigned place_of(std::uint64_t word) const noexcept;
    unsigned free_place();
    lock_place& place_at(unsigned at) noexcept {
        return at < lock_places ? block_->locks[at] : more_.at(at);
    }
    template <class Visit> void for_each_place(Visit&& visit) {
        for (unsigned at = 0; at < more_.end(); ++at) visit(place_at(at));
    }
    void leave_far_place(lock_place& last) noexcept;
    void hold(unsigned at, std::uint64_t word);
    void let_go(unsigned at, std::uint64_t word) noexcept;
    bool acquire(const hf_justdo_lock_calls& calls, void* lock, bool wait);
    void end() noexcept;
    void release_freed() noexcept;
    void forget_intention(const hf_justdo_lock_calls& calls, void* lock, lock_place& at) noexcept;
    void put(std::uint64_t& word, std::uint64_t value) noexcept;

    pool::impl* pool_;
    hf::medium pm_;
    thread_block* block_;
    std::byte* base_;          // of the pool
    std::uint64_t pool_bytes_; // that it may have
    frame first_;              // the start of the outermost frame
    thread_cache cache_;
    std::vector<frame> frames_;
    bool open_ = false;
    // What a fence has yet to wait for: nothing; the active entry's action, which can be repeated
    // with the next (1); or more.
    enum class unfenced : std::uint8_t { nothing, last_step, more } unfenced_ = unfenced::nothing;
    std::array<std::uint64_t, lock_places> held_{}; // lock words, by place; 0: free
    unsigned held_count_ = 0;
    unsigned held_end_ = 0;   // behind the last place of these that is not free
    more_places more_;        // the places behind them
    unsigned last_place_ = 0; // where the last section's last lock still is, which counts no more
    std::vector<more_head*> locks_; // the chains
    std::vector<more_head*> stack_;
    block freed_{0, 0};          // (5)
    std::uint64_t resuming_ = 0; // frames that are still to be entered again
    std::vector<frame> again_;   // those frames
    party* party_ = nullptr;
};

} // namespace hf::justdo
