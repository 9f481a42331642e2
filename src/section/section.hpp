// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A failure-atomic section in progress on one thread: its log, its blocks, the lines it dirtied.
// Engines share this. How a section begins, commits and is recovered is the engine's (protocol.hpp,
// and the engine's folder). This file has what holds in any medium; section_in.hpp has the steps
// that depend on what the medium can lose.
//
// (1) No in-place store to PM before every record appended so far is durable; the fence is taken
//     when such a store comes, so records that come together share one.
// (2) The heap's durable state changes only in commit, after the records that name the blocks are
//     durable and before the commit mark is stored (section_blocks.hpp, commit_marks.hpp).
// (3) Bytes filled in before a section are logged before the section changes them
//     (prepared_memory.hpp). While a section's mark is due, nothing between sections may change
//     what it has read or stored: hf::settle comes first. Debug builds and the crash checker look.
//     Calls of the library that store outside of sections settle the marks of all lanes themselves,
//     except before a store to a block that was staged since.
#pragma once

#include <base/assert.hpp>
#include <log/logged_words.hpp>
#include <open/pool_impl.hpp>
#include <open/registry.hpp>
#include <section/commit_marks.hpp>
#include <section/prepared_memory.hpp>
#include <section/protocol.hpp>
#include <section/section_blocks.hpp>
#include <section/stored_ranges.hpp>
#include <section/volatile_copies.hpp>
#include <trace/trace.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace hf {

/// How the thread's next section can begin without looking further: as its last one did, by the
/// same protocol and in the same pool, as long as that is the only one of the process. Whatever
/// begins otherwise withdraws it (section::start).
struct next_section {
    static constexpr std::uint64_t none = 0;
    /// What is offered: sections of that engine in the pool of that instance.
    static constexpr std::uint64_t offer(std::uint64_t instance, std::uint32_t engine) noexcept {
        return instance << 16 | std::uint64_t{engine} << 1;
    }
    /// Added while a section is open that began like that, and may end like that.
    static constexpr std::uint64_t taken = 1;
    bool is_taken() const noexcept { return (offered & taken) != 0; }

    std::uint64_t offered = none;
    protocol* by = nullptr;
};
extern constinit thread_local next_section next_section_here
    __attribute__((tls_model("initial-exec")));

class section {
public:
    section(const section&) = delete;
    section& operator=(const section&) = delete;
    virtual ~section();

    // What a program calls, of any engine's section.
    void free(void* given);
    void adopt(void* staged_block);

    /// The protocol of the section that is open. Requires: it is of that engine.
    template <class Protocol> Protocol& as() const noexcept {
        HF_ASSERT_SLOW(&engine() == &Protocol::row);
        return static_cast<Protocol&>(*protocol_);
    }
    /// The thread's next section begins, like its last one (next_section). Requires: a medium that
    /// keeps order, and a lane of its own. Where order is kept the sections before leave nothing to
    /// be done.
    void begin_again(const hf_txfunc& function) noexcept {
        HF_ASSERT_SLOW(keeps_order() && turns_ == nullptr && idle());
        copies_.forget();
        function_ = &function;
        current_section = this;
    }
    /// It is over, and has had to do with no block.
    void end_again() noexcept {
        HF_ASSERT_SLOW(!blocks_.touched());
        current_section = nullptr;
    }
    /// The lane's next section has its epoch, too, which is written nowhere.
    void leave_no_mark() noexcept { epoch_ = --marks_.state().epoch; }
    /// It is over.
    void end();
    /// Ends a section that leaves no mark: where order is kept, or if it has changed nothing but
    /// memory that it gives back. Its epoch is written nowhere.
    void end_unlogged();
    /// The blocks that it no longer needs are free. Requires: they have changed hands, and the
    /// section leaves no mark.
    [[gnu::always_inline]] void release_blocks() {
        blocks_.release([this](block b) { pool_->blocks.release(*cache_, b); });
    }
    bool watched() const noexcept { return range_bytes_ == 0; }

    /// A block for it, of so many bytes at least; offset 0: there is no room. Throws nothing.
    [[gnu::always_inline]] block reserve(std::uint64_t bytes) {
        try {
            blocks_.make_room();
            const block b = pool_->blocks.reserve(*cache_, bytes);
            HF_ASSERT_SLOW(b.offset == 0 || b.bytes == rounded(bytes));
            if (b.offset != 0) [[likely]]
                return b;
        } catch (const std::bad_alloc&) { // no memory to keep account of it: no room
        }
        return no_room(bytes);
    }
    void* take(block b) {
        blocks_.take(b);
        return base_ + b.offset;
    }
    bool fresh(std::uint64_t offset) const noexcept { return blocks_.taken().covers(offset); }
    /// The section stores to this memory of its own: entries in line and calls leave more stores
    /// there alone, until blocks change hands.
    void know_fresh(block own) noexcept {
        if (watched()) return; // each store is of interest
        hf_words.fresh[1] = hf_words.fresh[0];
        hf_words.fresh[0] = {reinterpret_cast<char*>(base_ + own.offset), own.bytes};
    }
    /// Whether it does so for that address.
    static bool is_known_fresh(const void* address) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(address);
        const auto in = [at](const auto& known) {
            return at - reinterpret_cast<std::uintptr_t>(known.first) < known.bytes;
        };
        return in(hf_words.fresh[0]) || in(hf_words.fresh[1]);
    }
    /// Offset of a store's target; 'outside' when it is volatile memory.
    std::uint64_t checked_offset(const void* address, std::uint64_t bytes) const;
    static constexpr std::uint64_t outside = ~std::uint64_t{0};
    /// Whether the address is in volatile memory for certain: no other pool is open.
    bool surely_outside(const void* address) const noexcept {
        const auto offset =
            static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
        return offset >= range_bytes_ && !watched() && registry::only_instance() == pool_->instance;
    }
    /// Ends the process where the bytes reach over the end of the pool.
    void check_end(std::uint64_t offset, std::uint64_t bytes) const;
    /// Counts a store to memory that the section took. It is written back as a whole: no line is
    /// noted.
    void store_to_own(const void* address, std::uint64_t bytes);
    /// Ends the process: a section that cannot report it has no room for its log. 'then': what
    /// becomes of it.
    [[noreturn]] void no_room_for_log(const char* then) const;
    /// A copy of the bytes, which no store changes, until the next section begins.
    const void* keep(const void* bytes, std::uint64_t count) { return copies_.keep(bytes, count); }

    /// Makes a mark that was left out durable (a thread leaves, a staged block is given back).
    void settle_mark();
    /// The thread uses the pool no more.
    void leave();
    /// Outside of sections the block is about to change hands (lane.hpp, 6): held until it has.
    [[nodiscard]] std::unique_lock<std::mutex> at_once(block b);
    /// What the thread has made before a section (3).
    prepared_memory& prepared() noexcept { return prepared_; }
    const prepared_memory& prepared() const noexcept { return prepared_; }
    /// Outside of sections: whether the bytes lie in a block that was staged since the last one. No
    /// log names it.
    bool staged_since(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return prepared_.staged_since(epoch_, offset, bytes);
    }
    void add_staged(block b) { prepared_.staged().push_back({b, epoch_}); }

    /// Whether nothing of a section is under way: before begin(), and after end().
    bool idle() const noexcept;
    /// Whether a section is under way.
    bool running() const noexcept;
    /// Ends the process where the pool is not at its canonical address, and the function is not
    /// built for that.
    void check_place(const hf_txfunc& function) const;
    /// Ends the process where no log has room for so many bytes of arguments.
    static void check_arguments(const hf_txfunc& function, std::uint64_t bytes);
    /// Writes the function's packed arguments as a log has them.
    void put_arguments(const hf_txfunc& function, const void* args, std::byte* to) const noexcept;
    /// Goes on as a pending section that runs again, in its place; its inputs are restored. Its
    /// stores are watched from here on.
    void go_on(protocol& by, const hf_txfunc& function, const pending_section& from);

    hf::pool::impl& pool() const noexcept { return *pool_; }
    protocol& by() const noexcept {
        HF_ASSERT_SLOW(protocol_ != nullptr);
        return *protocol_;
    }
    const engine_row& engine() const noexcept { return by().engine(); }
    const hf_txfunc* function() const noexcept { return function_; }
    hf::medium medium() const noexcept { return medium_; }
    bool keeps_order() const noexcept { return medium_.keeps_order(); }
    std::byte* base() const noexcept { return base_; }
    std::uint64_t epoch() const noexcept { return epoch_; }
    bool on_shared_lane() const noexcept { return turns_ != nullptr; }
    bool unfenced() const noexcept { return unfenced_; }
    bool stored() const noexcept { return stored_; }
    /// Whether a store there needs no announcement: it goes to memory of the section's own, or to
    /// none of the program's blocks.
    bool stores_untold(const void* address) const noexcept;
    void note_unfenced() noexcept { unfenced_ = true; }
    void forget_stored() noexcept { stored_ = false; }
    commit_marks& marks() noexcept { return marks_; }
    section_blocks& blocks() noexcept { return blocks_; }
    const logged_ranges& logged() const noexcept { return logged_; }
    stored_ranges& overwritten() noexcept { return left_; }

protected:
    section(hf::pool::impl& pool, std::uint32_t lane, thread_cache& cache, std::mutex* turns);

    /// Whether what idle and running sections have in common holds: marks, epochs, freed blocks.
    bool valid() const noexcept;
    /// A section's volatile state is as at its begin.
    void start(protocol& by, const hf_txfunc& function);
    block no_room(std::uint64_t bytes) const noexcept;
    std::uint64_t rounded(std::uint64_t bytes) const noexcept;
    void check_left() const noexcept;
    bool already_logged(std::uint64_t offset, std::uint64_t bytes);
    std::uint64_t far_offset(const void* address, std::uint64_t offset, std::uint64_t bytes) const;

    hf::pool::impl* pool_;
    thread_cache* cache_;
    std::mutex* turns_;
    commit_marks marks_;
    hf::medium medium_;
    std::byte* base_;
    std::uint64_t range_bytes_; // of the pool's address range; 0: every store is watched

    const hf_txfunc* function_ = nullptr;
    protocol* protocol_ = nullptr; // the section's, or the last one's
    std::vector<std::unique_ptr<protocol>> protocols_;
    std::uint64_t epoch_ = 0; // of this section
    bool unfenced_ = false;   // records appended since the last fence
    bool stored_ = false;     // something was stored to PM
    logged_ranges logged_;    // as old_bytes
    section_blocks blocks_;
    prepared_memory prepared_; // outside and inside sections
    volatile_copies copies_;
    // What the last section, whose mark is due, left of what it has logged the old bytes of: in
    // debug builds, under the crash checker, and where its engine asks.
    stored_ranges left_;
};

inline std::uint64_t section::checked_offset(const void* address, std::uint64_t bytes) const {
    const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    return offset < range_bytes_ ? offset : far_offset(address, offset, bytes);
}

inline void section::store_to_own(const void* address, std::uint64_t bytes) {
    persist::thread_counters().pm_bytes += bytes;
    trace::announce(trace::store, address, bytes);
}

/// Adds 'by' to every pool pointer among packed arguments that is not null.
void shift_pointers(const hf_txfunc& function, std::byte* args, std::uint64_t by) noexcept;

/// What a thread's sections in the pool are run by: of the pool's kind of medium. 'turns': held
/// while a section is open, on a lane that threads share; else null.
std::unique_ptr<section> make_section(pool::impl& pool, std::uint32_t lane, thread_cache& cache,
                                      std::mutex* turns);

/// The section on this thread has ended: its caller may be promised what it has made durable.
inline void leave_section() noexcept {
    const hf::medium pm = current_section->medium();
    current_section = nullptr;
    pm.end_group();
}

/// Where a section of 'engine' for 'function' may begin on this thread, which is open when begin()
/// returns; null: one is open, and the function is a part of it.
section* open_section(const engine_row& engine, const hf_txfunc& function, const void* args);

} // namespace hf
