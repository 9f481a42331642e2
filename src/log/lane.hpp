// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A log lane: where one thread's section leaves what recovery needs.  docs/format/log.md
//
//   lane   = header line, two halves           (sections take turns: the epoch's parity chooses)
//   half   = records …                         (continued in segments: blocks of the heap)
//   record = check, kind and offset, bytes, payload padded to words
//   kept   = the same mirrored, from the end of a half or segment downwards (5)
//
// (1) The first record of a section is its begin record, at the start of a half. It holds the
//     section's epoch, which grows with every section of the lane and over every open.
// (2) A record's check covers its words, its payload and the check before it. The chain starts in
//     the begin record, which holds the epoch: records of earlier sections never match. The first
//     mismatch ends the log, for no length is stored. Where order is kept, (4) says more.
// (3) A lane has the logs of two sections. The newest, by the epochs of valid begin records, is
//     pending if its epoch is above the header's 'committed': recovery has to look at it. It may
//     have returned, for a commit may leave 'committed' as it is (section/commit_marks.hpp, 2). A
//     begin record also says that the section before it has returned. That one does not count as
//     pending, but it need not be durable: its log, in the other half, stays until the section
//     after the newest writes there. Recovery may still replay it (redo/protocol.hpp, 2), or roll
//     it back (7).
//     If 'logged' is not 0, the section of the word log is pending (word_log.hpp). It has neither
//     an epoch nor a begin record of this kind, and uses half 0 behind an end mark in its first
//     line. A pending section of records beside it is damage.
// (4) Where the medium keeps order (a kill, or eADR), a lane is written in order, a word at a time,
//     so a failure leaves a prefix. Where the next record will be stands the end mark, the complement of the
//     last check. To append a record, the writer stores its end mark behind it, then the record
//     without its check, then the check in the place of the old end mark. What is there and is
//     neither a valid record nor the end mark is damage, and not the end of a log.
//     'witness' is a hash of 'committed', and is stored just before it. So a reader accepts the
//     hash of 'committed', or of the epoch after it; anything else is damage. Elsewhere a power
//     failure leaves any part of what was not fenced, and (2) alone decides.
// (5) A kept record holds bytes that a store replaced, and that the section had not read. Engine
//     clobber writes them where caches may be lost; where order is kept, its word log has them. They
//     serve only to roll back a section that would run again (clobber/kept_bytes.hpp), and only
//     while the caches are whole. They are stored through the cache, in program order, on lines of
//     their own, and never flushed. After a failure of the machine only salvage reads them.
//     The check of a kept record covers that of the kept record before it, and that of the last
//     other record. Its head counts the other records before it. So recovery can order both kinds.
// (6) No log names a block that changes hands outside of sections. A killed process may have stored
//     the allocator's bit for it without flushing the bit. 'at_once' names that block. It is stored
//     before the bit, and flushed by chance only. The next open flushes the bit.
// (7) With durability by_next_section, and where one thread alone has sections in a medium that
//     loses caches, a section of engine undo may return while its stores are not durable yet. It
//     leaves them to the next fence of its lane (section/commit_marks.hpp, 3):
//       a. It ends: 'returned' gets the checksum of what it stored, not flushed. 'committed' stays.
//       b. The next section's begin record repeats that checksum, and the last check of the first
//          section's log. Its first fence makes those stores durable.
//     Recovery looks at the newest section first. If the bytes in place have the checksum in
//     'returned', it had returned, and stays, as does the one before. Else it is rolled back, and
//     the one before is next:
//       - Its log has been written over: the fence of (b) was passed, and it is durable.
//       - Its log ends in the check that (b) repeats, and its bytes have that checksum: it stays.
//       - Its log ends in that check, and its bytes have another: it is rolled back, too.
#pragma once

#include <alloc/heap.hpp>
#include <base/assert.hpp>
#include <base/checksum.hpp>
#include <base/line.hpp>
#include <pool/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <type_traits>
#include <vector>

namespace hf {

/// An open starts its lanes' epochs this far above what it finds. More sections than that cannot
/// have been begun without one of their marks becoming durable.
inline constexpr std::uint64_t epoch_gap = std::uint64_t{1} << 32;

struct lane_header {
    std::uint64_t committed; // epoch of the lane's last section known to be committed
    std::uint64_t witness;   // of 'committed', if the lane is written in order (4)
    std::uint64_t at_once;   // block that changed hands outside of sections last; 0: none (6)
    std::uint64_t returned;  // checksum of what the lane's newest section stored, if it has
                             // returned and left its stores (7); else of another, or 0
    // A word log (word_log.hpp): its end, from pool start, 0: nothing is pending in it; the
    // section's engine_bit, and its function.
    std::uint64_t logged;
    std::uint64_t logged_engine;
    std::uint64_t logged_function;
    std::uint64_t ended; // so many sections have ended a word log here: for `holdfast top`
};
// In place of a witness, where the lane is not written in order (any more); 0: it never was.
inline constexpr std::uint64_t lane_unordered = 0x756e6f726465726bULL;
constexpr std::uint64_t witness_of(std::uint64_t committed) noexcept {
    return (committed + 1) * 0x9e3779b97f4a7c15ULL;
}
inline bool is_ordered(const lane_header& h) noexcept {
    return h.witness != 0 && h.witness != lane_unordered;
}
/// Stores the mark of a section and starts its write-back.
template <class Medium>
void store_mark(Medium pm, lane_header* header, std::uint64_t epoch) noexcept {
    HF_ASSERT_SLOW(header->committed <= epoch); // a lane's mark only grows
    if (is_ordered(*header))                    // upholds (4)
        pm.store_word(&header->witness, pm.keeps_order() ? witness_of(epoch) : lane_unordered);
    pm.store_word(&header->committed, epoch);
}
static_assert(sizeof(lane_header) == line_bytes && std::is_trivially_copyable_v<lane_header>);

// Part of the durable format: do not change the values.
enum class record_kind : std::uint8_t {
    begin = 1,     // payload: begin_payload, then the packed arguments; offset: staged and filled
                   // records to follow, and in_order_bit
    preserve = 2,  // payload: volatile bytes the section reads
    old_bytes = 3, // payload: what stood at 'offset' before the section's store
    alloc = 4,  // block at 'offset' of 'bytes' reserved by the section; offset 0: there was no room
    free = 5,   // block at 'offset' of 'bytes' freed by the section
    staged = 6, // block at 'offset' of 'bytes' that the section may adopt
    segment = 7, // the log goes on in the block at 'offset' of 'bytes'
    resumed = 8, // recovery starts to re-execute; 'offset' is the pool's generation
    filled = 9,  // payload: filled_payload, of bytes at 'offset' written before the section
    made = 10,   // staged and filled in one: a block filled from its start, of the size that its
                 // bytes need. Read back as those two
    overwritten = 11, // payload: what stood at 'offset' before a store to bytes that the section
                      // had not read. The kind of kept records (5)
    unkept = 12,      // there was no room for an overwritten record: no more of them follow
    new_bytes = 13, // payload: deferred_store entries, which wait for the commit; offset: 1 in the
                    // last such record of the section, else 0
    own = 14,       // alloc and filled in one, as made is: a block that the section took, filled
};

struct record_head {
    std::uint64_t check; // of what, bytes, payload and the check before
    std::uint64_t what;  // [kind:8][offset from pool start:56]
    std::uint64_t bytes; // of the payload, or of the block named
};
static_assert(sizeof(record_head) == 24 && std::is_trivially_copyable_v<record_head>);

/// The head of a kept record, behind its payload. The check is stored last.
struct kept_head {
    std::uint64_t bytes; // [records before it, modulo 2^16:16][bytes of the payload:48]
    std::uint64_t what;
    std::uint64_t check;
};
static_assert(sizeof(kept_head) == sizeof(record_head));
inline constexpr unsigned kept_bytes_bits = 48;

struct begin_payload {
    std::uint64_t epoch;
    std::uint64_t function_id;      // which txfunc
    std::uint64_t function_version; // which body
    std::uint16_t engine;           // engine_bit
    std::uint16_t floats;           // float_environment in which the section runs
    std::uint32_t args_bytes;       // packed arguments that follow
};
static_assert(sizeof(begin_payload) == 32 && std::is_trivially_copyable_v<begin_payload>);

// In the offset of a begin record: the lane is written in order.
inline constexpr std::uint64_t in_order_bit = std::uint64_t{1} << 32;

// A begin record stands at the start of a half, whole: the smallest lane's half is 2 016 bytes.
inline constexpr std::uint64_t args_bytes_max = 1024;
static_assert(2 * sizeof(record_head) + sizeof(begin_payload) + args_bytes_max <= 2016);

constexpr bool has_payload(record_kind kind) {
    return kind == record_kind::begin || kind == record_kind::preserve ||
           kind == record_kind::old_bytes || kind == record_kind::filled ||
           kind == record_kind::made || kind == record_kind::overwritten ||
           kind == record_kind::new_bytes || kind == record_kind::own;
}

constexpr bool names_block(record_kind kind) {
    return kind == record_kind::alloc || kind == record_kind::free || kind == record_kind::staged ||
           kind == record_kind::segment;
}

constexpr bool is_of(record_kind kind, std::uint64_t what) {
    return what >> 56 == static_cast<std::uint64_t>(kind);
}

/// In the place of arguments in the begin record of a section that begins where the one before it
/// has left its stores (7).
struct left_payload {
    std::uint64_t chain; // check of that one's last record
    std::uint64_t sum;   // of what it stored
};
static_assert(sizeof(left_payload) == 16 && std::is_trivially_copyable_v<left_payload>);

/// Sum of what a section stored, range by range in the order of its log's records.
class sum_of_stores {
public:
    explicit sum_of_stores(std::uint64_t epoch) noexcept : sum_(epoch) {}
    /// Returns the range's own.
    std::uint64_t add(const void* at, std::uint64_t bytes) noexcept {
        const std::uint64_t own = XXH3_64bits(at, bytes);
        sum_ = checksum(&own, sizeof own, sum_);
        return own;
    }
    std::uint64_t sum() const noexcept { return sum_; }

private:
    std::uint64_t sum_;
};

/// Bytes that came to PM under the same fence as the section's first records. Where they do not
/// have this sum that fence was never passed: the section has stored nothing in place.
struct filled_payload {
    std::uint64_t bytes; // how many
    std::uint64_t sum;   // their XXH3-64
};
static_assert(sizeof(filled_payload) == 16 && std::is_trivially_copyable_v<filled_payload>);

/// The head of what a new_bytes record holds of one granule of the heap, 16 bytes: behind it follow
/// those of its two words that have bytes to be stored.
struct deferred_store {
    std::uint64_t where; // [offset of the granule from pool start:48][its bytes to be stored:16]

    std::uint64_t offset() const noexcept { return where >> 16; }
    std::uint16_t mask() const noexcept { return static_cast<std::uint16_t>(where); }
};
static_assert(sizeof(deferred_store) == 8);

/// The head of a run in a new_bytes record: neighbouring granules that the replay stores whole.
/// Their bytes follow.
struct deferred_run {
    deferred_store first; // without a mask
    std::uint64_t granules;
};
static_assert(sizeof(deferred_run) == 16);
inline constexpr std::uint64_t granules_in_run_min = 3; // fewer take no less each by itself

/// The check of a record whose predecessor has the check 'chain' (2).
inline std::uint64_t record_check(std::uint64_t what, std::uint64_t bytes, const void* payload,
                                  std::uint64_t payload_bytes, std::uint64_t chain) noexcept {
    HF_ASSERT_SLOW(payload != nullptr || payload_bytes == 0);
    std::uint64_t words[3] = {what, bytes, 0};
    // The payload is hashed without a seed: XXH3 would derive a secret from it for long inputs.
    if (payload_bytes > 0) words[2] = XXH3_64bits(payload, payload_bytes);
    return checksum(words, sizeof words, chain);
}

/// Where the next records go, and the checks they continue.
struct lane_position {
    std::byte* next;
    std::byte* limit;
    std::uint64_t chain;
    std::byte* kept;              // where the next kept record ends (5)
    std::uint64_t kept_chain = 0; // of kept records
    std::uint64_t records = 0;    // so far, without kept ones
};

/// The check of a kept record at this position.
inline std::uint64_t kept_check(const lane_position& at, std::uint64_t what, std::uint64_t bytes,
                                const void* payload, std::uint64_t payload_bytes) noexcept {
    std::uint64_t words[3] = {what, bytes, 0};
    if (payload_bytes == word_bytes) std::memcpy(&words[2], payload, word_bytes);
    else words[2] = XXH3_64bits(payload, payload_bytes);
    return checksum(words, sizeof words, at.chain ^ at.kept_chain);
}
/// In the head of a kept record at this position.
inline std::uint64_t kept_bytes_word(const lane_position& at, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes >> kept_bytes_bits == 0);
    return at.records << kept_bytes_bits | bytes;
}

/// Where records go that are appended to a log.
class lane_writer {
public:
    /// Whether both kinds of records have their places: on whole words, the kept ones (5) on lines
    /// of their own, behind everything else.
    bool valid() const noexcept {
        const auto whole_words = [](const std::byte* at) {
            return reinterpret_cast<std::uintptr_t>(at) % word_bytes == 0;
        };
        if (at_.next == nullptr || !whole_words(at_.next) || !whole_words(at_.kept)) return false;
        return at_.limit == limit_below(at_.kept) && at_.next <= at_.kept;
    }
    static void store_in_order(std::byte* to, std::uint64_t word) noexcept {
        HF_ASSERT_SLOW(reinterpret_cast<std::uintptr_t>(to) % word_bytes == 0); // never torn
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to))
            .store(word, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    /// True when a record with 'payload_bytes' fits and leaves room for a segment record after it.
    bool fits(std::uint64_t payload_bytes) const noexcept {
        return at_.next + record_bytes(payload_bytes) + sizeof(record_head) <= at_.limit;
    }
    static std::uint64_t record_bytes(std::uint64_t payload_bytes) noexcept {
        return sizeof(record_head) + round_up(payload_bytes, word_bytes);
    }
    /// The check of the last record.
    std::uint64_t chain() const noexcept { return at_.chain; }
    /// The same for a kept record.
    bool fits_kept(std::uint64_t bytes) const noexcept {
        return at_.next + sizeof(record_head) + record_bytes(bytes) + 2 * line_bytes <= at_.kept;
    }

protected:
    /// Where the other records end: no line is theirs and that of a kept record or its end mark.
    static std::byte* limit_below(std::byte* kept) noexcept {
        return kept - word_bytes -
               (reinterpret_cast<std::uintptr_t>(kept) - word_bytes) % line_bytes;
    }

    lane_position at_{};
};

/// Appends records. Fences nothing: the section decides when its records must be durable.
template <class Medium> class lane_writer_in : public lane_writer {
public:
    /// In the offset of a begin record (4).
    static constexpr std::uint64_t begin_bits = Medium::keeps_order() ? in_order_bit : 0;

    explicit lane_writer_in(Medium pm) noexcept : medium_(pm) {}

    /// At the start of a half: what stood there is gone.
    void start(lane_position at) noexcept {
        HF_ASSERT_SLOW(at.records == 0);
        HF_ASSERT_SLOW(at.kept_chain == 0);
        HF_ASSERT_SLOW(at.kept == at.limit);
        at_ = at;
        at_.limit = limit_below(at.kept);
        HF_ASSERT_SLOW(valid());
        end_records(at.next, at.chain);
        end_kept();
    }
    /// Behind records that are there already. A build that keeps nothing may have left less room
    /// than limit_below() does, and a damaged log may say so: a segment record has room even then.
    void go_on(lane_position at) noexcept {
        HF_ASSERT_SLOW(at.next + sizeof(record_head) <= at.limit);
        at_ = at;
        at_.limit = std::max(limit_below(at.kept), at.next + sizeof(record_head));
    }
    /// Requires: fits(payload_bytes), except for a segment record. 'payload' may be null when it
    /// has no bytes.
    void append(record_kind kind, std::uint64_t offset, std::uint64_t bytes, const void* payload,
                std::uint64_t payload_bytes) noexcept {
        HF_ASSERT_SLOW(fits(payload_bytes));
        HF_ASSERT_SLOW(kind != record_kind::segment);
        append_before(at_.next + record_bytes(payload_bytes), kind, offset, bytes, payload,
                      payload_bytes);
    }
    /// Fills the line of the last record with zeros: a line that is stored whole is durable sooner.
    /// Nothing may be appended behind. Where order is kept it would be of no use.
    void fill_line() noexcept
        requires(!Medium::keeps_order())
    {
        const auto next = reinterpret_cast<std::uintptr_t>(at_.next);
        if (next % line_bytes == 0) return;
        static constexpr std::byte zeros[line_bytes]{};
        HF_ASSERT_SLOW(at_.next + (line_bytes - next % line_bytes) <= at_.limit);
        medium_.copy(at_.next, zeros, line_bytes - next % line_bytes);
    }
    /// Keeps the bytes at 'old', which stand at 'offset' (5). Requires: fits_kept(bytes), of more
    /// than 0 bytes.
    void keep(std::uint64_t offset, std::uint64_t bytes, const void* old) noexcept;
    /// Appends a segment record and goes on in that segment, which starts at 'begin'.
    void continue_in(std::byte* begin, std::uint64_t offset, std::uint64_t bytes) noexcept;

private:
    /// 'next': where the record after this one will be.
    void append_before(std::byte* next, record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                       const void* payload, std::uint64_t payload_bytes) noexcept;
    // Where order is kept a log ends in a mark, and a record's check is stored last (4).
    static void end_records(std::byte* next, std::uint64_t chain) noexcept;
    void end_kept() noexcept;
    static void store_check(std::byte* to, std::uint64_t check) noexcept;

    [[no_unique_address]] Medium medium_;
};

template <>
inline void lane_writer_in<ordered_medium>::end_records(std::byte* next,
                                                        std::uint64_t chain) noexcept {
    store_in_order(next, ~chain);
}
template <> inline void lane_writer_in<ordered_medium>::end_kept() noexcept {
    store_in_order(at_.kept - word_bytes, ~at_.kept_chain);
}
template <>
inline void lane_writer_in<ordered_medium>::store_check(std::byte* to,
                                                        std::uint64_t check) noexcept {
    store_in_order(to, check);
}
template <>
inline void lane_writer_in<fenced_medium>::end_records(std::byte*, std::uint64_t) noexcept {}
template <> inline void lane_writer_in<fenced_medium>::end_kept() noexcept {}
template <>
inline void lane_writer_in<fenced_medium>::store_check(std::byte*, std::uint64_t) noexcept {}

/// One record as read back.
struct record_view {
    record_kind kind;
    std::uint64_t offset;
    std::uint64_t bytes;
    const std::byte* payload;
};

/// A section that a crash cut short, as read from its lane. Every number is bounded.
struct pending_section {
    std::uint32_t lane;
    begin_payload begin;
    std::vector<std::byte> args;
    std::uint64_t announced;         // staged and filled records that its begin record counts
    bool in_words = false;           // its log has no checks (word_log.hpp)
    bool sound = true;               // false: its log continues where no log can
    bool kept_known = true;          // kept records are among its records
    std::deque<record_view> records; // begin excluded, in order: there may be very many
    lane_position end;               // where its log goes on
    // The section before it in its lane, committed, where its log may have to stand for its stores
    // (commit_marks.hpp, 3): of blocks that were staged it names those that it adopted only. Or one
    // that has returned, and may have to be rolled back.
    std::unique_ptr<pending_section> earlier;

    /// Whether the log of a section with deferred stores holds all of them.
    bool has_all_new_bytes() const noexcept {
        return std::ranges::any_of(records, [](const record_view& r) {
            return r.kind == record_kind::new_bytes && r.offset == 1;
        });
    }
};

inline lane_header* lane_at(pool_file& file, std::uint32_t lane) noexcept {
    HF_ASSERT_SLOW(lane < file.shape().lane_count);
    return reinterpret_cast<lane_header*>(file.base() + file.shape().lanes_offset +
                                          lane * file.shape().lane_bytes);
}
/// No segment is smaller, whatever outgrew the lane.
inline std::uint64_t segment_bytes_min(const pool_file& file) noexcept {
    return 2 * file.shape().lane_bytes;
}
/// Where the records of a section begin; the chain starts from a constant, the epoch is in the
/// record.
inline lane_position lane_start(pool_file& file, std::uint32_t lane, std::uint64_t epoch) noexcept {
    const std::uint64_t half_bytes =
        round_down((file.shape().lane_bytes - sizeof(lane_header)) / 2, line_bytes);
    std::byte* half =
        reinterpret_cast<std::byte*>(lane_at(file, lane) + 1) + epoch % 2 * half_bytes;
    HF_ASSERT_SLOW(half + half_bytes <=
                   reinterpret_cast<std::byte*>(lane_at(file, lane)) + file.shape().lane_bytes);
    return {half, half + half_bytes, 0x686f6c6466617374ULL, half + half_bytes};
}

/// Where a lane holds what no process that was only killed can have left there (4).
struct lane_damage {
    const char* what = nullptr; // null: nowhere
    std::uint64_t offset;       // from pool start
    std::uint64_t expected;
    std::uint64_t found;
};

/// Takes all that a lane holds out of it, durably: for what no epoch can be above. start_lane()
/// comes next.
void erase_lane(pool_file& file, std::uint32_t lane) noexcept;

/// Makes 'epoch', above all that the lane has seen, its mark, durably; nothing is pending in it.
void start_lane(pool_file& file, std::uint32_t lane, std::uint64_t epoch) noexcept;

/// Whether the lanes' kept records are there, whole: the pool keeps them, and caches outlived what
/// happened to it.
inline bool kept_records_count(const pool_file& file) noexcept {
    return !file.was_clean() && file.dropped_bytes() == 0 && !file.stores_in_doubt();
}

/// Reads a lane. Returns true and fills 'found' when a section is pending. 'newest_epoch' receives
/// the highest epoch the lane has seen. Never reads outside the lane and the segments it names.
/// 'with_kept': reads kept records, too, each at its place among the others.
bool read_lane(pool_file& file, const heap& blocks, std::uint32_t lane, pending_section& found,
               std::uint64_t& newest_epoch, lane_damage& damage, bool with_kept = true);

} // namespace hf
