// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What engine justdo keeps in a pool: of each thread a block, named by a table.  docs/format/justdo.md
//
//   root_words::anchor ──> superblock, then offsets of blocks        (one chunk of the heap)
//                                                    └──> thread_block, then frames
//                                                            ├──> more_head, then places of locks
//                                                            ──> … └──> more_head, then frames ──>
//                                                            …
//   frame = frame_head, then what its function keeps there                 (each at a line)
//
// (1) A section is open if and only if the thread's program counter is not 0. Then its active
//     entry, its frames down to its depth, and its lock log are whole, and say how it resumes.
// (2) Program counter and entries are one line, and the first store to a line persists first. An
//     entry is whole when the program counter makes it active; from then on it only loses its
//     'before_too'.
// (3) Repeating an entry does no harm. Nor does repeating the entry before it first, if the active
//     one says that the earlier one may not have persisted ('before_too'). It stops saying so
//     before the earlier entry is overwritten.
// (4) A lock that may be held is intended by a thread, unless it frees itself. A lock that a
//     thread's open section owns is held for that section; if it is owned exclusively, no other
//     section owns it. Entries of a thread without an open section mean nothing.
// (5) A block by which a thread's block has grown reads as more_head, and zeros, before a word
//     names it. The word is durable before the block is allocated. The block belongs to the thread
//     for good, for later sections, too.
#pragma once

#include <base/line.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hf::justdo {

inline constexpr std::uint64_t superblock_magic = 0x314f444a54534648ULL; // "HFSTJDO1" in the file
inline constexpr std::uint64_t thread_magic = 0x444145524854444aULL;     // "JDTHREAD" in the file

struct superblock {
    std::uint64_t magic;        // superblock_magic
    std::uint64_t thread_bytes; // of a thread's block
    std::uint64_t threads_max;  // words that follow: offsets of blocks, from pool start; 0: none
    std::uint64_t reserved[5];  // zero
};
static_assert(sizeof(superblock) == line_bytes && std::is_trivially_copyable_v<superblock>);

// Part of the durable format: do not change the values.
enum class action : std::uint8_t {
    none = 0,   // only the program counter has moved
    store = 1,  // 'value', 'size' bytes of it, to 'offset'
    copy = 2,   // 'extra' bytes from offset 'value' to 'offset', which do not overlap
    fill = 3,   // 'extra' bytes at 'offset' with the lowest byte of 'value'
    move = 4,   // a stage, number 'size', to 'offset', and what is left of a move that overlaps
    alloc = 5,  // the block at offset 'value' of 'extra' bytes; its address to 'offset'
    free = 6,   // the block at offset 'value' of 'extra' bytes
    lock = 7,   // place 'extra' of the lock log owns 'value'
    unlock = 8, // place 'extra' of the lock log owns nothing
};

/// One step.
struct log_entry {
    std::uint64_t where; // [action:8][before_too:1][size:7][offset from pool start:48]
    std::uint64_t value;
    std::uint64_t extra;

    static constexpr std::uint64_t before_too = std::uint64_t{1} << 55;
    static constexpr std::uint64_t where_of(action what, std::uint64_t size, std::uint64_t offset) {
        return std::uint64_t(what) << 56 | size << 48 | offset;
    }
    action what() const noexcept { return static_cast<action>(where >> 56); }
    std::uint64_t size() const noexcept { return where >> 48 & 0x7f; }
    std::uint64_t offset() const noexcept { return where & ((std::uint64_t{1} << 48) - 1); }
    bool repeats_before() const noexcept { return (where & before_too) != 0; }
};
/// How many bytes of the pool a step stores at its offset.
inline std::uint64_t stored_bytes(const log_entry& e) noexcept {
    switch (e.what()) {
    case action::store: return e.size();
    case action::copy:
    case action::fill: return e.extra;
    case action::move: return e.value >> 48;
    case action::alloc: return sizeof e.value;
    default: return 0;
    }
}
static_assert(sizeof(log_entry) == 24 && std::is_trivially_copyable_v<log_entry>);

/// The rest of an overlapping copy, which goes piece by piece: where the piece came from, and what
/// is left behind it. Pieces are taken from the front if the copy goes down, else from the end.
struct move_rest {
    std::uint64_t value; // [bytes of the piece:16][its offset:48]
    std::uint64_t extra; // [from the end:1][bytes left:63]

    static constexpr std::uint64_t from_end = std::uint64_t{1} << 63;
    std::uint64_t piece_bytes() const noexcept { return value >> 48; }
    std::uint64_t from() const noexcept { return value & ((std::uint64_t{1} << 48) - 1); }
    std::uint64_t left_bytes() const noexcept { return extra & ~from_end; }
    bool backwards() const noexcept { return (extra & from_end) != 0; }
};

/// [active entry:1][open:1][depth:38][second snapshot:1][resume point:23]
struct program_counter {
    std::uint64_t word;

    // No pool has room for so many frames.
    static constexpr std::uint64_t depth_max = (std::uint64_t{1} << 38) - 1;
    static constexpr std::uint64_t place_mask = (1 << 24) - 1; // snapshot and resume point
    static constexpr program_counter at(unsigned active, std::uint64_t depth, std::uint64_t place) {
        return {std::uint64_t{active} << 63 | std::uint64_t{1} << 62 | depth << 24 | place};
    }
    bool open() const noexcept { return word != 0; }
    unsigned active() const noexcept { return static_cast<unsigned>(word >> 63); }
    std::uint64_t depth() const noexcept { return word >> 24 & depth_max; }
    std::uint32_t place() const noexcept { return static_cast<std::uint32_t>(word & place_mask); }
    bool well_formed() const noexcept { return at(active(), depth(), place()).word == word; }
};

/// One line: (2).
struct thread_log {
    std::uint64_t counter; // program_counter
    log_entry entries[2];
    std::uint64_t reserved; // zero
};
static_assert(sizeof(thread_log) == line_bytes && std::is_trivially_copyable_v<thread_log>);

/// The word of one lock: 0, or [1:1][kind:7][8 unused][offset from pool start:48].
constexpr std::uint64_t lock_word(std::uint32_t kind, std::uint64_t offset) {
    return std::uint64_t{1} << 63 | std::uint64_t{kind} << 56 | offset;
}
constexpr std::uint32_t lock_kind(std::uint64_t word) { return word >> 56 & 0x7f; }
constexpr std::uint64_t lock_offset(std::uint64_t word) {
    return word & ((std::uint64_t{1} << 48) - 1);
}

/// A place of the lock logs.
struct lock_place {
    std::uint64_t
        intended; // it may be held: stored before it is taken, cleared when it has been released
    std::uint64_t owned; // it is held, by the thread's open section
};

inline constexpr unsigned lock_places = 64; // in a thread's own block: the first ones
inline constexpr std::uint64_t stage_bytes = 256;

struct thread_block {
    thread_log log;
    std::uint64_t magic;       // thread_magic
    std::uint64_t more_locks;  // the first block of more places of locks, from pool start; 0: none
    std::uint64_t more_frames; // the first block of more frames
    std::uint64_t reserved[5]; // zero
    lock_place locks[lock_places];
    std::byte stages[2][stage_bytes]; // pieces of copies that overlap
};
static_assert(sizeof(thread_block) == 2 * line_bytes + 1024 + 512);
static_assert(std::is_trivially_copyable_v<thread_block>);

inline constexpr std::uint64_t more_locks_magic = 0x534b434f4c2b444aULL;  // "JD+LOCKS" in the file
inline constexpr std::uint64_t more_frames_magic = 0x454d4152462b444aULL; // "JD+FRAME" in the file

/// The head of a block by which a thread's block has grown: (5). Blocks of one kind form a chain.
struct more_head {
    std::uint64_t magic;       // more_locks_magic, or more_frames_magic
    std::uint64_t next;        // the next one of the chain, from pool start; 0: none
    std::uint64_t thread;      // whose it is: offset of that block
    std::uint64_t number;      // in the chain, from 1
    std::uint64_t bytes;       // of this block
    std::uint64_t reserved[3]; // zero
};
static_assert(sizeof(more_head) == line_bytes && std::is_trivially_copyable_v<more_head>);

inline constexpr std::uint64_t more_bytes_min = 4096;
/// The number of places for locks in such a block.
constexpr std::uint64_t places_in(std::uint64_t bytes) {
    return (bytes - sizeof(more_head)) / sizeof(lock_place);
}

struct frame_head {
    std::uint64_t function_id;
    std::uint64_t function_version;
    std::uint64_t bytes; // of the frame, this head included: a multiple of lines
    // While another frame is above it: [number of the block where that one lies first:40][snapshot
    // and resume point of this function:24]. 0: it lies right behind this one.
    std::uint64_t call_place;
    std::uint64_t constants; // hash of where the constants lie whose addresses it may hold; 0: none
    std::uint64_t reserved[3]; // zero

    std::uint32_t place() const noexcept {
        return static_cast<std::uint32_t>(call_place & program_counter::place_mask);
    }
    std::uint64_t block_above() const noexcept { return call_place >> 24; }
};
static_assert(sizeof(frame_head) == line_bytes && std::is_trivially_copyable_v<frame_head>);

inline constexpr std::uint64_t thread_bytes_min = 4096;
inline constexpr std::uint64_t thread_bytes_max = std::uint64_t{1} << 20;

/// The bytes of a thread's block in a new pool of this limit.
constexpr std::uint64_t thread_bytes_for(std::uint64_t max_bytes) {
    return max_bytes >= (std::uint64_t{16} << 20) ? std::uint64_t{64} << 10 : thread_bytes_min;
}
/// How many threads' words a chunk has room for.
constexpr std::uint64_t threads_max_for(std::uint64_t chunk_bytes) {
    return (chunk_bytes - sizeof(superblock)) / word_bytes;
}

} // namespace hf::justdo
