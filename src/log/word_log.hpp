// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The undo log of a section: the bytes that its stores replaced. It needs a medium that keeps
// stores in order, or lines that come to the disk together (mode power, undo/batches.hpp). For a section that runs again it also has what that needs.  docs/format/log.md
//
//   log   = [begin] entry*    from word_log_room() on; it goes on in segments, blocks of the heap
//   begin = what:u64 bytes:u64 version:u64 arguments what a section runs again with; padded, as below
//   entry = what:u64 word:u64                        old bytes, at most eight
//         | what:u64 bytes:u64 payload               longer ones, or preserved; padded to 16 bytes
//         | what:u64 bytes:u64                       a block, or another entry without a payload
//   what  = [kind:8][offset from pool start:56]
//
// Entries carry no checks, and the log has no mark. Recovery needs only order:
// (1) 'logged' in the lane's header says where the log ends; 0: nothing is pending. It is stored
//     after the entries that it counts, and before the stores that they are for. When the log goes
//     on in a segment, 'logged' is the start of that block.
// (2) A killed process has made a prefix of its stores, in program order. For its processor stops
//     between two instructions, and the caches outlive it; with eADR they outlive a failure of the
//     machine, too. So only the compiler could break (1).
//     store_in_order() forbids it to move stores past that one, either way.
// (3) A commit logs each block that the section has taken or freed before it changes that block's
//     bit in the heap's bitmaps. When all are changed, it stores 0 in 'logged'. Until it logs them,
//     the bitmaps do not show what the section has taken, so a kill leaves nothing to take back. A
//     section that runs again logs each block sooner (section/word_protocol.hpp, 2).
// (4) Every open checks the form of a pending log, and no more can be checked: known kinds, sizes
//     and places that can be, and entries that end at 'logged'. So a pool whose stores may not have
//     survived in order is refused, unless salvage is asked for. That suits a file copied after its
//     process had died: it counts as torn, and its logs are whole. In mode power a log comes to the
//     disk whole (undo/batches.hpp, 4), and is read after a power cut.
#pragma once

#include <log/lane.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <atomic>
#include <utility>

namespace hf {

inline constexpr std::uint64_t word_entry_bytes = HF_WORD_ENTRY_BYTES;
// Kinds of entries are those of records, and these with the number of bytes.
inline constexpr unsigned old_word_kind = HF_OLD_WORD_KIND;
inline constexpr unsigned overwritten_word_kind = 0x90;

/// Writes the log of the section that runs on this thread.
class word_log {
public:
    /// Nothing is logged. From here on entries are those of a section of 'engine', for 'function'.
    void start(pool_file& file, std::uint32_t lane, std::uint32_t engine,
               std::uint64_t function) noexcept;
    /// The same where the thread has written no other log since, nor the lane had one.
    void start_again(std::uint64_t function) noexcept {
        HF_ASSERT_SLOW(header_ != nullptr && is_empty());
        HF_ASSERT_SLOW(hf_words.logged == &header_->logged && hf_words.limit == limit_);
        HF_ASSERT_SLOW(hf_words.fresh[0].bytes == 0 && hf_words.fresh[1].bytes == 0);
        hf_words.next = first_;
        std::atomic_ref(header_->logged_function).store(function, std::memory_order_relaxed);
    }
    bool is_empty() const noexcept { return header_->logged == 0; }
    /// Whether an entry that takes so many bytes has room, and one for a segment behind it.
    bool fits(std::uint64_t entry_bytes) const noexcept {
        return entry_bytes <= static_cast<std::uint64_t>(hf_words.limit + spare_ - hf_words.next);
    }
    static std::uint64_t entry_bytes(std::uint64_t old_bytes) noexcept {
        return old_bytes <= word_bytes ? word_entry_bytes : long_entry_bytes(old_bytes);
    }
    static std::uint64_t long_entry_bytes(std::uint64_t payload_bytes) noexcept {
        return word_entry_bytes + round_up(payload_bytes, word_entry_bytes);
    }
    /// Logs the bytes that stand there now. Requires: fits(entry_bytes(bytes)), and at least one
    /// byte.
    void add_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes) noexcept {
        add_bytes(record_kind::old_bytes, old_word_kind, offset, address, bytes);
    }
    void add_overwritten(std::uint64_t offset, const void* address, std::uint64_t bytes) noexcept {
        add_bytes(record_kind::overwritten, overwritten_word_kind, offset, address, bytes);
    }
    /// Logs what a section reads. Requires: fits(long_entry_bytes(bytes)).
    void add_preserved(const void* from, std::uint64_t bytes) noexcept {
        add_long(record_kind::preserve, 0, from, bytes);
    }
    /// The log of a section that runs again begins: it is pending with the next entry, or by
    /// count(). Returns the place for its arguments.
    std::byte* add_begin(std::uint64_t version, std::uint16_t floats,
                         std::uint64_t args_bytes) noexcept {
        HF_ASSERT_SLOW(hf_words.next == first_ && args_bytes <= args_bytes_max);
        char* const next = hf_words.next;
        const std::uint64_t bytes = word_bytes + args_bytes; // with the version
        store(next, what_of(record_kind::begin, floats));
        store(next + word_bytes, bytes);
        store(next + word_entry_bytes, version);
        hf_words.next = next + long_entry_bytes(bytes);
        persist::thread_counters().log_entries -= long_entry_bytes(bytes) / word_entry_bytes;
        return reinterpret_cast<std::byte*>(next + word_entry_bytes + word_bytes);
    }
    /// Logs a block, or another entry without a payload. Requires: fits(word_entry_bytes).
    void add_block(record_kind kind, block b) noexcept {
        HF_ASSERT_SLOW(fits(word_entry_bytes));
        append(what_of(kind, b.offset), b.bytes, word_entry_bytes);
    }
    /// All that was added counts.
    void count() noexcept {
        // Upholds (1).
        lane_writer::store_in_order(reinterpret_cast<std::byte*>(hf_words.logged),
                                    static_cast<std::uint64_t>(hf_words.next - hf_words.base));
    }
    /// Goes on in that block.
    void continue_in(block b) noexcept;
    /// Goes on where a log ends that was read.
    void go_on(pool_file& file, std::uint32_t lane, const lane_position& end) noexcept;
    /// The section is over, and the log with it (3).
    void end() noexcept {
        end_again();
        room_ = first_;
        hf_words.next = hf_words.limit = limit_;
    }
    /// The same of a log that did not leave the lane's own room.
    void end_again() noexcept {
        if (hf_words.next != first_) { // a section that stores nothing leaves no trace
            count_entries();
            lane_header* const header = header_;
            lane_writer::store_in_order(reinterpret_cast<std::byte*>(&header->logged), 0);
            ++header->ended; // one instruction, beside a word that is stored anyway
        }
        hf_words.next = hf_words.limit;
    }

    /// Whether it has old bytes.
    bool has_old_bytes() const {
        bool any = false;
        for_each_stored([&](std::uint64_t, std::uint64_t) { any = true; });
        return any;
    }

    // A log may have to go to a disk (persist/line_log.hpp, 4):
    /// Leaves the section so much of the lane's room, from here on.
    void limit_room(std::uint64_t bytes) noexcept {
        if (bytes < static_cast<std::uint64_t>(limit_ + spare_ - first_))
            hf_words.limit = first_ + bytes - spare_;
    }
    /// The lane's room is all the log's again. Requires: it has not gone on in a block.
    void widen() noexcept { hf_words.limit = limit_; }
    /// The thread has left its section by a jump.
    static void forget() noexcept { hf_words.next = hf_words.limit; }
    /// Entries in line find no room: every store calls, until show().
    void hide() noexcept { hidden_ = std::exchange(hf_words.next, hf_words.limit); }
    void show() noexcept { hf_words.next = hidden_; }
    /// Where the next entry goes.
    const char* next() const noexcept { return hf_words.next; }
    /// Calls 'visit(offset, bytes)' for the bytes that each entry of old bytes is for.
    template <class Visit> void for_each_stored(Visit&& visit) const {
        for (const char* at = first_; at != hf_words.next;) {
            std::uint64_t what = 0, word = 0;
            __builtin_memcpy(&what, at, sizeof what);
            __builtin_memcpy(&word, at + word_bytes, sizeof word);
            const auto kind = static_cast<unsigned>(what >> 56);
            const std::uint64_t offset = what & ((std::uint64_t{1} << 56) - 1);
            at += word_entry_bytes;
            if (kind >= old_word_kind) {
                visit(offset, kind % 16);
            } else if (has_payload(record_kind{static_cast<std::uint8_t>(kind)})) {
                if (kind == static_cast<unsigned>(record_kind::old_bytes) ||
                    kind == static_cast<unsigned>(record_kind::overwritten))
                    visit(offset, word);
                at += long_entry_bytes(word) - word_entry_bytes;
            } else if (kind == static_cast<unsigned>(record_kind::segment)) {
                at = reinterpret_cast<const char*>(base_) + offset;
            }
        }
    }
    const char* first() const noexcept { return first_; }
    lane_header* header() const noexcept { return header_; }

private:
    /// The thread's last section may have been in another pool: all of it is this one's again.
    void give_room() noexcept {
        room_ = first_;
        hf_words = {first_,     limit_, &header_->logged, reinterpret_cast<char*>(base_),
                    words_end_, {}};
    }
    /// All entries of this room, and so those that the section has made in line.
    void count_entries() const noexcept {
        const auto bytes = static_cast<std::uint64_t>(hf_words.next - room_);
        persist::counters& c = persist::thread_counters();
        c.log_entries += bytes / word_entry_bytes;
        c.log_bytes += bytes;
        // Or the compiler loads two counters as one: such a load waits for the stores to each.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        c.pm_bytes += bytes;
    }
    static constexpr std::uint64_t what_of(unsigned kind, std::uint64_t offset) noexcept {
        return std::uint64_t{kind} << 56 | offset;
    }
    static constexpr std::uint64_t what_of(record_kind kind, std::uint64_t offset) noexcept {
        return what_of(static_cast<unsigned>(kind), offset);
    }
    static void store(void* to, std::uint64_t word) noexcept {
        std::atomic_ref(*static_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
    }
    void append(std::uint64_t what, std::uint64_t word, std::uint64_t bytes) noexcept {
        char* const next = hf_words.next;
        store(next, what);
        store(next + word_bytes, word);
        hf_words.next = next + bytes;
        count();
    }
    void set_room(pool_file& file, std::uint32_t lane) noexcept;
    void add_long(record_kind kind, std::uint64_t offset, const void* from,
                  std::uint64_t bytes) noexcept;
    void add_bytes(record_kind kind, unsigned word_kind, std::uint64_t offset, const void* address,
                   std::uint64_t bytes) noexcept;

    std::byte* base_ = nullptr;
    lane_header* header_ = nullptr;
    char* first_ = nullptr; // the lane's own room
    char* limit_ = nullptr;
    // Room behind the limit, for calls alone. Entries in line are also made for memory that the
    // section took. They may fill the room, and calls, which know that memory, still log what
    // counts.
    std::uint64_t spare_ = 0;
    char* room_ = nullptr; // where the log is now
    char* hidden_ = nullptr;
    std::uint64_t words_end_ = 0;
};

/// Where a lane's log starts, and ends.
lane_position word_log_room(pool_file& file, std::uint32_t lane) noexcept;

/// Reads the log that the lane's header says is pending. Never reads outside the lane and the
/// segments that it names.
void read_word_log(pool_file& file, const heap& blocks, std::uint32_t lane, pending_section& found,
                   lane_damage& damage);

/// Nothing is pending in the lane's word log, durably with the next fence.
inline void end_word_log(hf::medium pm, lane_header* header) noexcept {
    if (header->logged != 0) pm.store_word(&header->logged, 0);
}

} // namespace hf
