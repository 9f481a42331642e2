// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pending section run again (Clobber §4.3). Its function gets the same arguments, the same blocks
// and the same preserved bytes, in the same order, and goes on where the first run ended.
//
// (1) The run must do the same as the first run, and checks that it does: a function that asks for
//     other blocks or preserves other bytes has diverged, and ends the process (or the guarded
//     run).
// (2) A run that cannot go on, and has stored nothing in place, leaves no trace of the section: it
//     jumps back to run(), out of the function.
#pragma once

#include <clobber/protocol.hpp>

#include <csetjmp>
#include <deque>
#include <optional>
#include <vector>

namespace hf::clobber {

/// Bytes of the pool, a bit each: memory by the lines that they are in.
class logged_bytes {
public:
    void add(std::uint64_t offset, std::uint64_t bytes) {
        HF_ASSERT_SLOW(offset + bytes >= offset); // bounded when the log was read
        lines_.make_room(bytes / line_bytes + 2);
        each_line(offset, bytes, [&](std::uint64_t line, std::uint64_t mask) {
            lines_.at(line) |= mask;
            return true;
        });
    }
    /// True when all of these were added.
    bool all(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return each_line(offset, bytes, [&](std::uint64_t line, std::uint64_t mask) {
            const std::uint64_t* found = lines_.find(line);
            return found != nullptr && (*found & mask) == mask;
        });
    }

private:
    template <class Visit>
    static bool each_line(std::uint64_t offset, std::uint64_t bytes, Visit&& visit) {
        for (std::uint64_t at = offset, end = offset + bytes; at < end;) {
            const std::uint64_t next = std::min(end, round_down(at, line_bytes) + line_bytes);
            const std::uint64_t mask = ~std::uint64_t{0} >> (line_bytes - (next - at))
                                                                << at % line_bytes;
            HF_ASSERT_SLOW(next > at);
            HF_ASSERT_SLOW(mask != 0);
            if (!visit(at / line_bytes, mask)) return false;
            at = next;
        }
        return true;
    }
    offset_table lines_;
};

class re_execution {
public:
    /// Takes the section up in 'work'. All three outlive the run. Requires: its inputs are
    /// restored.
    re_execution(section& work, pending_section& pending);

    /// Runs the function, for as long as the pool's options allow, and commits: true; or discards
    /// the section. Durable when it returns.
    bool run();

    // The section that runs again calls these: they follow its first run's log, up to its end.
    /// The section has called the runtime. Does not return when the run has to stop.
    void entered() const noexcept;
    /// Reports a coming store; 'fresh': to memory of its own.
    void stores(std::uint64_t offset, std::uint64_t bytes, bool fresh);
    /// Whether the first run has logged all of these old bytes: as inputs; or as anything.
    bool logged(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return inputs_.all(offset, bytes);
    }
    bool kept(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return held_.all(offset, bytes);
    }
    /// Whether it has logged that the block is freed.
    bool freed(std::uint64_t offset) const noexcept { return frees_.covers(offset); }
    /// The block that it was given here, of so many bytes; offset 0: there was no room. None: it
    /// had not come so far.
    std::optional<block> next_block(std::uint64_t bytes);
    /// The bytes that it preserved here. Does not return when it had not come so far.
    const void* next_preserved(std::uint64_t bytes);
    /// Ends the run as if the section had never begun, if that is possible still; else returns.
    void give_up();

private:
    bool made_ready() const;
    void call();
    void discard();
    const void* as_read(const void* logged, std::uint64_t bytes);
    const pool_file& file() const noexcept { return *work_.pool().file; }

    section& work_;
    taken_up& by_;
    pending_section& pending_;
    std::vector<block> blocks_;          // to be handed out again, in order
    std::vector<record_view> preserved_; // to be read again, in order
    std::size_t next_block_ = 0;
    std::size_t next_preserved_ = 0;
    block_set frees_;                        // already in the log
    logged_bytes inputs_;                    // already in the log, as old_bytes
    logged_bytes held_;                      // the same, and as overwritten
    logged_bytes reached_;                   // lines that this run has stored to
    std::deque<translated_copy> translated_; // logged bytes, made elsewhere
    bool in_place_ = false;                  // it has stored to memory that is not fresh
    // Between this thread and a signal handler of it.
    volatile std::uint64_t progress_ = 0; // read by the handler
    std::uint64_t progress_seen_ = 0;     // by the handler
    volatile bool expired_ = false;       // written by the handler
    std::jmp_buf unrun_;                  // (2)
};

} // namespace hf::clobber
