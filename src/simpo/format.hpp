// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What SIMPO keeps in a pool.  docs/format/simpo.md
//
//   root_words::anchor ──> superblock, then offsets of blocks            (one chunk of the heap)
//   a block ──> head, copy 0, copy 1, log array                             (an object; from a line on each)
//   or      ──> head                                       (an object that is swapped out: a file has its copy)
//
// (1) A block that a word names is an object, whole; it is allocated, or an open allocates it.
// (2) 'resilient' names one of the copies: the object after all calls below a position. It and the
//     log from that position on are the object; the other copy is nothing until 'resilient' names
//     it. Then its check is durable, too.
// (3) A record below 'logged' counts, and is not checked: a medium that keeps order stores 'logged'
//     behind the records of a group, and loses and tears none of them. Any other record counts when
//     its check holds at its position. Positions are never used twice in the life of an object, and
//     'salt' is the object's own: what else stood at a place of the log is no record.
// (4) Committed are the records from 'resilient' on, without a gap, to the last one that ends a
//     group. The record below 'logged' ends one.
// (5) Of an object that is swapped out nothing is in a log: the copy in its file is the object. It
//     has the check of copy 0.
#pragma once

#include <base/checksum.hpp>
#include <base/line.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hf::simpo {

inline constexpr std::uint64_t superblock_magic = 0x504d495354534648ULL; // "HFSTSIMP" in the file
inline constexpr std::uint64_t object_magic = 0x4a424f504d495348ULL;     // "HSIMPOBJ" in the file
inline constexpr std::uint64_t swapped_magic = 0x505753504d495348ULL;    // "HSIMPSWP" in the file
inline constexpr std::size_t text_bytes_max = 63;
inline constexpr std::uint64_t log_bytes_min = 1ULL << 10, log_bytes_max = 1ULL << 30;
/// Words behind a record's head: argument_words_max, and the operation counts towards them.
inline constexpr std::uint64_t record_words_max = 60;
inline constexpr std::uint64_t object_bytes_max = 1ULL << 38;

/// The place where a record begins, in lines since the object was made. Its place in the log is
/// this number modulo the log's lines.
using position = std::uint64_t;
inline constexpr position position_max = 1ULL << 53;

struct superblock {
    std::uint64_t magic;       // superblock_magic
    std::uint64_t objects_max; // words that follow
    std::uint64_t reserved[6]; // zero
};
static_assert(sizeof(superblock) == line_bytes && std::is_trivially_copyable_v<superblock>);
constexpr std::uint64_t objects_max_for(std::uint64_t chunk_bytes) {
    return (chunk_bytes - sizeof(superblock)) / word_bytes;
}

struct object_head {
    std::uint64_t magic;         // object_magic, or swapped_magic: its copy is in a file
    std::uint64_t check;         // of all that follows up to 'resilient'
    std::uint64_t salt;          // seeds the checks of records; of no other object of the pool
    std::uint64_t object_bytes;  // of the class
    std::uint64_t log_lines;     // a power of two
    std::uint32_t class_version; // of class_name
    std::uint32_t callers;       // that it has room for
    std::uint32_t results;       // kept of each; 0 without callers
    std::uint32_t result_words;  // of each result; 0 without callers
    std::uint64_t since;         // position from which on it has this block; 0: it was made there
    char class_text[text_bytes_max + 1]; // zero-padded
    char name[text_bytes_max + 1];       // zero-padded
    std::uint64_t resilient;             // the resilient index (index_of)
    std::uint64_t copy_checks[2];        // of each copy's bytes
    std::uint64_t file;              // number of its file (docs/format/simpo.md); 0: it has none
    std::uint64_t logged;            // the records below need no check (3)
    std::uint64_t history;           // number of the file that keeps its calls; 0: nothing does
    std::uint64_t reserved_words[2]; // zero
};
static_assert(sizeof(object_head) == 4 * line_bytes && offsetof(object_head, resilient) == 192);
static_assert(offsetof(object_head, class_text) == line_bytes);
static_assert(std::is_trivially_copyable_v<object_head>);
static_assert(std::has_unique_object_representations_v<object_head>, "no padding");

inline std::uint64_t head_check(const object_head& h) noexcept {
    return checksum(&h.salt, offsetof(object_head, resilient) - offsetof(object_head, salt),
                    h.magic);
}
/// The resilient index in one failure-atomic word: sum:8 position:55 copy:1. The sum reveals any
/// one flipped bit; it reveals another object's index except one in 256.
constexpr std::uint64_t index_sum(std::uint64_t what, std::uint64_t salt) noexcept {
    std::uint64_t folded = what ^ salt;
    folded ^= folded >> 32;
    folded ^= folded >> 16;
    folded ^= folded >> 8;
    return folded & 0xff;
}
constexpr std::uint64_t index_of(std::uint64_t salt, position at, unsigned which) noexcept {
    const std::uint64_t what = at << 1 | which;
    return index_sum(what, salt) << 56 | what;
}
constexpr position position_of(std::uint64_t index) noexcept { return index << 8 >> 9; }
constexpr unsigned copy_of(std::uint64_t index) noexcept { return index & 1; }
constexpr bool index_holds(std::uint64_t index, std::uint64_t salt) noexcept {
    return index == index_of(salt, position_of(index), copy_of(index)) &&
           position_of(index) <= position_max;
}

inline bool is_swapped(const object_head& h) noexcept { return h.magic == swapped_magic; }

inline std::uint64_t copy_check(const object_head& h, const void* copy,
                                std::uint64_t copy_bytes) noexcept {
    return checksum(copy, copy_bytes, h.salt);
}

/// A caller whose calls are made once: behind the object in each copy, from a line on; all of them,
/// then the results of the first, of the second … Moves with the calls that are made, as the object
/// does.
struct caller_entry {
    std::uint64_t id;      // 0: none
    std::uint64_t last;    // number of its last call that was made
    std::uint64_t results; // that it has had; the last of them are kept, each at its number's rest
    std::uint64_t reserved;
};
static_assert(sizeof(caller_entry) == 32 && std::is_trivially_copyable_v<caller_entry>);

/// Precedes a result's words.
struct result_head {
    std::uint64_t number; // of its call
    std::uint64_t what;   // sum of that call's function and arguments
};
static_assert(sizeof(result_head) == 16 && std::is_trivially_copyable_v<result_head>);

inline constexpr std::uint32_t callers_max = 65'535, results_max = 1U << 24, result_words_max = 64;

/// How large an object's table of callers is.
struct caller_shape {
    std::uint32_t callers = 0, results = 0, result_words = 0;

    constexpr std::uint64_t result_bytes() const noexcept {
        return sizeof(result_head) + result_words * word_bytes;
    }
    /// Requires: valid().
    constexpr std::uint64_t bytes() const noexcept {
        return callers * (sizeof(caller_entry) + results * result_bytes());
    }
    constexpr bool valid() const noexcept {
        if (callers == 0) return results == 0 && result_words == 0;
        return callers <= callers_max && results >= 1 && results <= results_max &&
               result_words <= result_words_max && bytes() <= object_bytes_max;
    }
};
inline caller_shape callers_of(const object_head& h) noexcept {
    return {h.callers, h.results, h.result_words};
}

/// Parts of an object's block, from its start.
struct object_layout {
    std::uint64_t table_offset; // of the table of callers, in a copy
    std::uint64_t copy_bytes, log_offset, block_bytes;
    std::uint64_t copy_offset(unsigned which) const noexcept {
        return sizeof(object_head) + which * copy_bytes;
    }
};
/// Requires: all of it within its bounds.
constexpr object_layout layout_of(std::uint64_t object_bytes, std::uint64_t log_lines,
                                  const caller_shape& callers = {}) {
    const std::uint64_t table = round_up(object_bytes, line_bytes);
    const std::uint64_t copy = table + round_up(callers.bytes(), line_bytes);
    const std::uint64_t log = sizeof(object_head) + 2 * copy;
    return {table, copy, log, log + log_lines * line_bytes};
}
inline object_layout layout_of(const object_head& h) {
    return layout_of(h.object_bytes, h.log_lines, callers_of(h));
}
/// The bytes of the object's current block.
inline std::uint64_t block_bytes_of(const object_head& h) {
    return is_swapped(h) ? sizeof h : layout_of(h).block_bytes;
}

/// The bytes of its block in this heap. It avoids classes of less or more than whole lines: behind
/// their first block others begin within a line.
template <class Heap> std::uint64_t rounded_to_lines(const Heap& in, std::uint64_t block_bytes) {
    std::uint64_t taken = in.rounded(block_bytes);
    while (taken % line_bytes != 0) taken = in.rounded(taken + 1);
    return taken;
}

enum class record_kind : std::uint8_t {
    deferred = 1,
    instant = 2,       // ends a group
    deferred_once = 3, // not made if its caller has made it
    instant_once = 4,  // likewise; ends a group; its result is kept
    add_caller = 5,    // ends a group
    dismiss = 6,       // removes its caller; ends a group
    joined_once = 7,   // as instant_once, in a group that a later record ends
};
inline constexpr auto record_kind_last = std::uint8_t(record_kind::joined_once);
constexpr bool ends_group(std::uint8_t kind) {
    return kind != std::uint8_t(record_kind::deferred) &&
           kind != std::uint8_t(record_kind::deferred_once) &&
           kind != std::uint8_t(record_kind::joined_once);
}
/// Words before its arguments: caller and number.
constexpr std::uint64_t operation_words(std::uint8_t kind) {
    return kind >= std::uint8_t(record_kind::deferred_once) ? 2 : 0;
}

/// First half of a record's first line; its arguments follow.
struct record_head {
    std::uint64_t check;    // of all that follows, seeded with the object's salt; 0 below 'logged'
    std::uint64_t position; // where it begins
    std::uint64_t function; // identifier; 0: none, the group's end alone
    std::uint32_t schema;   // of the function's parameters
    std::uint16_t version;  // of the function
    std::uint8_t words;     // of arguments, without those of the operation
    std::uint8_t kind;      // record_kind
};
static_assert(sizeof(record_head) == 32 && std::has_unique_object_representations_v<record_head>);

constexpr std::uint64_t record_lines(std::uint64_t words) {
    return (sizeof(record_head) + words * word_bytes + line_bytes - 1) / line_bytes;
}
inline constexpr std::uint64_t record_lines_max = record_lines(record_words_max);
static_assert(2 * record_lines_max * line_bytes <= log_bytes_min);

/// A record as it is written and read: whole lines.
struct alignas(line_bytes) record {
    record_head head;
    std::uint64_t
        arguments[record_lines_max * line_bytes / word_bytes - sizeof(record_head) / word_bytes];

    /// Words behind the record's head.
    std::uint64_t words() const noexcept { return operation_words(head.kind) + head.words; }
    std::uint64_t lines() const noexcept { return record_lines(words()); }
    const std::uint64_t* call_arguments() const noexcept {
        return arguments + operation_words(head.kind);
    }
    /// Whether it can be the record that begins there; its first line says so.
    bool begins(position at) const noexcept {
        return head.position == at && words() <= record_words_max;
    }
    /// Whether it is one of the object's. Requires: begins(at), and all its lines are there.
    bool counts(position at, const object_head& of, position logged) const noexcept {
        return at < logged ? at + lines() <= logged : head.check == sum(of.salt);
    }
    std::uint64_t sum(std::uint64_t salt) const noexcept {
        return checksum(&head.position, sizeof head - sizeof head.check + words() * word_bytes,
                        salt);
    }
};
static_assert(sizeof(record) == record_lines_max * line_bytes);

} // namespace hf::simpo
