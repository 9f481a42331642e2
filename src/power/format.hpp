// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The log of mode power in its file, format version 1 (docs/format/power.md): two header copies,
// then two segments of batches. Do not change the meaning of existing fields: they are part of the
// format on disk.
#pragma once

#include <base/checksum.hpp>
#include <base/line.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hf::power {

inline constexpr std::uint64_t log_magic = 0x474f4c5245574f50ULL;   // "POWERLOG" in the file
inline constexpr std::uint64_t batch_magic = 0x4843544142524550ULL; // "PERBATCH"
inline constexpr std::uint32_t log_version = 1;
/// Batches begin at multiples of it: durable bytes share no sector with bytes that are still to
/// come.
inline constexpr std::uint64_t block_bytes = 4096;
inline constexpr std::uint64_t header_copies = 2;
inline constexpr std::uint64_t segment_count = 2;
inline constexpr std::uint64_t segments_offset = header_copies * block_bytes;
inline constexpr std::uint64_t segment_bytes_min = 64ULL << 10;
inline constexpr std::uint64_t segment_bytes_max = 1ULL << 30;

struct log_header {
    std::uint64_t magic;           // log_magic
    std::uint32_t version;         // log_version
    std::uint32_t header_bytes;    // sizeof(log_header)
    std::uint8_t uuid[16];         // the pool's
    std::uint64_t generation;      // of the pool's open that this log serves
    std::uint64_t salt;            // of this log's batches: older ones have another
    std::uint64_t segment_bytes;   // of each of the two
    std::uint64_t batch_bytes_max; // longest batch
    std::uint64_t applied;         // batches up to this one are durable in the pool's file
    std::uint64_t writes;          // grows by one with every header write; the higher copy counts
    std::uint64_t follows;         // salt of the pool's log before this one; 0: there was none
    std::uint64_t reserved[4];     // zero
    std::uint64_t checksum;        // XXH3-64 of all bytes before it, seeded with log_magic
};
static_assert(sizeof(log_header) == 128 && offsetof(log_header, checksum) == 120);
static_assert(std::is_trivially_copyable_v<log_header> &&
              std::has_unique_object_representations_v<log_header>);

inline std::uint64_t header_checksum(const log_header& h) noexcept {
    return checksum(&h, offsetof(log_header, checksum), log_magic);
}

/// The size of a log with this header.
inline std::uint64_t file_bytes(const log_header& h) noexcept {
    return segments_offset + segment_count * h.segment_bytes;
}

/// Followed by 'lines' lines of 64 bytes, then by as many numbers: where each belongs in the pool,
/// in lines from its start. Zeros fill the last block.
struct batch_head {
    std::uint64_t checksum; // XXH3-64 of all bytes of the batch behind it, seeded with 'salt'
    std::uint64_t magic;    // batch_magic
    std::uint64_t salt;     // the log's
    std::uint64_t sequence; // grows by one from batch to batch, from 1
    std::uint64_t bytes;    // of the whole batch, a multiple of block_bytes
    std::uint64_t lines;    // at least 1
    std::uint64_t reserved[2];
};
static_assert(sizeof(batch_head) == line_bytes);
static_assert(std::has_unique_object_representations_v<batch_head>);

inline std::uint64_t batch_checksum(const std::byte* batch, const batch_head& h) noexcept {
    return checksum(batch + sizeof h.checksum, h.bytes - sizeof h.checksum, h.salt);
}

/// Bytes of a batch of so many lines.
constexpr std::uint64_t batch_bytes(std::uint64_t lines) noexcept {
    return round_up(sizeof(batch_head) + lines * (line_bytes + sizeof(std::uint64_t)), block_bytes);
}
/// Lines that a batch of at most so many bytes holds.
constexpr std::uint64_t lines_in(std::uint64_t bytes) noexcept {
    return (bytes - sizeof(batch_head)) / (line_bytes + sizeof(std::uint64_t));
}

} // namespace hf::power
