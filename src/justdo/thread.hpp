// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's log, lock log and frames, and the steps that move it through its sections.  JUSTDO §5
//
// (1) All that resumption at a program counter reads, or takes for done, is durable before that
//     program counter can be: data of steps before it, frames, what the function has noted. But for
//     the last store or change of the lock log, which recovery makes again: then the entry says so.
// (2) An entry is durable, and active, before what it says is done.
// (3) Nothing of a section is to be seen in a lock before it is durable: stores before the lock is
//     released, and that it is no longer owned. With the last one the section's end.
// (4) A lock is owned, in the log, only while it is held; it is intended before it may be held and
//     until it is durably free.
// (5) A freed block is nobody's until the entry that frees it is no longer active: else doing that
//     again would free it under its new owner.
//
// Differs: one ordering point a store, where the paper's order wants two (1); locks that free
// themselves, as generations do, are not intended; an allocation is an entry, its result a store of
// it.
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

/// Those that resume together (resume.hpp), as one of them sees it.
class party {
public:
    virtual ~party() = default;
    /// The thread cannot go on before another one has.
    virtual void wait() = 0;
    /// The thread does a step, at these bytes of the pool (or at none), or has got a lock. Does not
    /// return where they are none that a section may change.
    virtual void progressed(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;
    /// The thread's section has ended, and what its function does behind it is nobody's concern.
    [[noreturn]] virtual void finished() noexcept = 0;
};

class thread {
public:
    thread(pool::impl& in, std::uint64_t offset, std::uint64_t bytes);

    std::uint64_t offset() const noexcept { return pool_->offset_of(block_); }
    bool open() const noexcept { return open_; }
    const hf_justdo_function* function() const noexcept {
        return frames_.empty() ? nullptr : frames_.back().function;
    }

    // The calls of justdo_abi.h.
    void* enter(const hf_justdo_function& function, std::uint32_t& resumed);
    void check_argument(const void* pointer, std::uint32_t number) const noexcept;
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

    /// Nobody's any more: the blocks at hand go back.
    void retire() noexcept { pool_->blocks.release_all(cache_); }

    // Recovery. Requires: what the block holds is sound (inspect.hpp). Idempotent, until it
    // resumes.
    /// The blocks that its own has grown by.
    template <class Visit> void for_each_block(Visit&& visit) const {
        for (const std::vector<more_head*>* chain : {&locks_, &stack_})
            for (const more_head* head : *chain) visit(block{pool_->offset_of(head), head->bytes});
    }
    /// Whether its log says that a section was cut short.
    bool pending() const noexcept { return program_counter{block_->log.counter}.open(); }
    /// The block that the section's last step takes, or frees; {0, 0}: none, or no block of the
    /// heap.
    block held() const noexcept;
    /// Allocates the block that is taken, claims the one that is freed. Durable with the next
    /// fence.
    /// Requires: believe(), durably. Errors: corrupt.
    status settle_held();
    /// Leaves that section as it stands.
    void give_up() noexcept;
    /// The same, and nothing is believed of the blocks that its own has grown by.
    void give_up_growth() noexcept;
    /// Writes back what the log says: a killed process may only have stored it. Durable with the
    /// next fence, which comes before anything that builds on it. 'frames': those of an open
    /// section, too, as far as inspect() has looked at them.
    void believe(bool frames);
    /// Does again what the log says of itself; durable with the next fence. Requires:
    /// settle_held(). Errors: corrupt.
    status take_up();
    /// Makes every lock free that the thread may have held; durable with the next fence. One of a
    /// kind that this program does not have waits for the next open: a repair alone comes here with
    /// it.
    void reset_locks();
    /// Clears what is intended and not owned; not one that waits. Requires: those locks are free,
    /// durably.
    void forget_intentions();
    /// Takes the locks that the section owned.
    void own_again(party& with);
    /// Makes the locks free that it has taken again, or took when it was resumed: its section is
    /// given up, and nobody else has taken any yet.
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

    // Where the block has no room (room.cpp).
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
    frame first_;              // where one begins that is the outermost
    thread_cache cache_;
    std::vector<frame> frames_;
    bool open_ = false;
    unsigned active_ = 0;
    std::uint64_t logged_depth_ = 0; // the program counter's
    // What a fence has yet to wait for: nothing, what the active entry does, which can be done
    // again with the next (1), or more.
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

/// The thread whose functions are running here; null: none.
extern constinit thread_local thread* current;

} // namespace hf::justdo
