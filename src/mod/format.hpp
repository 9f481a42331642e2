// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What MOD keeps in a pool.  docs/format/mod.md
//
//   root_words::anchor ──> superblock, then cells               (one chunk of the heap)
//                                 └ arenas ──> newest arena ──> … ──> oldest      (chunks)
//
// (1) Cells below 'cell_count' are whole; a cell changes by its word, by the stamp behind a word
//     of the redo record, in the same line, by 'in_place', and once from unbound to bound.
// (2) An arena named by the list is allocated in the heap, or is the one that 'taking' names.
// (3) The bitmaps of arenas are right if and only if 'clean' holds; else a trace finds the nodes in
//     use.
// (4) A killed process may have stored an element in place, and not flushed it. 'in_place', stored
//     before it and flushed by chance only, names the line.
#pragma once

#include <base/checksum.hpp>
#include <base/line.hpp>

#include <holdfast/author/mod/store.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hf::mod {

inline constexpr std::uint64_t superblock_magic = 0x31444f4d54534648ULL; // "HFSTMOD1" in the file
inline constexpr std::uint64_t arena_magic = 0x414e455241444f4dULL;      // "MODARENA" in the file
inline constexpr unsigned redo_updates_max = 50;
inline constexpr unsigned family_members_max = 64;
inline constexpr std::size_t name_bytes_max = 63;
inline constexpr std::uint32_t no_cell = ~std::uint32_t{0}; // an index

/// A commit of unrelated roots: valid if its checksum holds. A cell takes its word from here unless
/// its stamp shows that it has done so, or that a later commit came.
struct redo_record {
    std::uint64_t check;  // of all that follows, up to 'count' entries
    std::uint64_t number; // grows with every record
    std::uint64_t count;
    struct entry {
        std::uint64_t cell; // index
        std::uint64_t word;
    } entries[redo_updates_max];
};

/// Two elements of a vector that are exchanged in place: valid if its checksum holds. An open that
/// finds the cell not past this record stores both again.
struct alignas(line_bytes) exchange_record {
    std::uint64_t check;  // of all that follows
    std::uint64_t number; // among those of redo records; never 0
    std::uint32_t cell;   // index
    std::uint32_t bytes;  // of an element: 1, 2, 4 or 8
    struct element {
        std::uint64_t at; // from the pool's start
        std::uint64_t value;
    } elements[2];
    std::uint64_t reserved; // zero
};
static_assert(sizeof(exchange_record) == line_bytes);

struct superblock {
    std::uint64_t magic;      // superblock_magic
    std::uint64_t cell_count; // cells in use
    std::uint64_t arenas;     // offset of the newest arena; 0: none
    std::uint64_t taking;     // offset of an arena that may be half taken; 0: none
    std::uint64_t taking_bytes;
    std::uint64_t clean;  // 1: closed cleanly, the arenas' bitmaps say what is in use
    std::uint64_t shares; // 1: there may be nodes with several parents
    std::uint64_t reserved;
    redo_record redo;
    std::uint64_t reserved2;
    exchange_record exchanges[2]; // written in turns
};
static_assert(sizeof(superblock) == 1024 && offsetof(superblock, redo) == line_bytes);
static_assert(offsetof(superblock, exchanges) == 1024 - 2 * sizeof(exchange_record));
static_assert(std::is_trivially_copyable_v<superblock>);

struct alignas(line_bytes) cell {
    std::uint64_t word;            // the current version
    std::uint64_t stamp;           // number of the last record that this cell is past
    std::uint32_t kind;            // kind::id; 0: a member that nobody has opened yet
    std::uint32_t family;          // index of the family's cell, plus 1; 0: none
    std::uint32_t member;          // which of its members
    std::uint32_t members;         // of a family: how many; their cells follow its own
    std::uint64_t shape;           // the kind's own: element sizes …
    std::uint64_t in_place;        // where an element was stored in place last; 0: nowhere (4)
    std::uint64_t reserved[2];     // zero
    char name[name_bytes_max + 1]; // zero-padded

    /// Which word of its first line a member is.
    static constexpr std::size_t stamp_at = 1, in_place_at = 5;
};
static_assert(sizeof(cell) == 128 && offsetof(cell, name) == line_bytes);
static_assert(offsetof(cell, word) == 0 && offsetof(cell, stamp) == cell::stamp_at * word_bytes &&
              offsetof(cell, in_place) == cell::in_place_at * word_bytes);
static_assert(std::is_trivially_copyable_v<cell>);

/// Head of an arena: slots of one size. A bitmap of its slots follows, then, at a line, the slots.
struct arena_head {
    std::uint64_t magic;      // arena_magic
    std::uint64_t next;       // offset of the arena taken before it; 0: none
    std::uint64_t bytes;      // of the whole arena
    std::uint32_t slot_bytes; // a multiple of the granule; with 'slots', one word
    std::uint32_t slots;
    std::uint64_t reserved[4];
};
static_assert(offsetof(arena_head, slot_bytes) % word_bytes == 0);
static_assert(sizeof(arena_head) == line_bytes && std::is_trivially_copyable_v<arena_head>);

/// The offset of an arena's slots from its start.
constexpr std::uint64_t slots_at(std::uint64_t slots) {
    return sizeof(arena_head) + round_up((slots + 7) / 8, line_bytes);
}
/// How many slots of 'slot_bytes' an arena of 'bytes' has.
constexpr std::uint32_t slots_in(std::uint64_t bytes, std::uint64_t slot_bytes) {
    std::uint64_t slots = (bytes - sizeof(arena_head)) / slot_bytes;
    while (slots > 0 && slots_at(slots) + slots * slot_bytes > bytes) --slots;
    return static_cast<std::uint32_t>(slots);
}

inline std::uint64_t redo_check(const redo_record& r) noexcept {
    return checksum(&r.number, 2 * word_bytes + r.count * sizeof(redo_record::entry),
                    superblock_magic);
}

inline std::uint64_t exchange_check(const exchange_record& r) noexcept {
    return checksum(&r.number, sizeof r - offsetof(exchange_record, number), superblock_magic);
}

} // namespace hf::mod
