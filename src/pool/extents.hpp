// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How an extent is split: the heap's tables in front, then its chunks (their meaning:
// alloc/heap.hpp). And how long the next one may become. Pure.
//
// (1) An extent's tables have room for more chunks than it has at first, up to 'laid_out_bytes' of
//     it. So the last extent can be lengthened, chunk by chunk, without another place in the
//     header's table.
// (2) Another extent is begun only if the last one cannot be lengthened by as much as is needed. It
//     is laid out for so much that the extents left after it reach the format's limit, however
//     small the steps that fill them.
#pragma once

#include <cstdint>

namespace hf {

/// A piece of the heap: contiguous in the file and in memory. Multiples of the chunk size; new
/// parts read as zeros. Offsets count from the pool's base.
struct extent {
    std::uint64_t offset_bytes;
    std::uint64_t size_bytes;
};

inline constexpr std::uint64_t granule_bytes = 16; // smallest block; one bitmap bit each
inline constexpr std::uint32_t extents_max = 128;

struct extent_split {
    std::uint64_t chunks;            // that it has
    std::uint64_t chunks_max;        // that its tables have room for
    std::uint64_t entry_table_bytes; // the bits follow
    std::uint64_t metadata_bytes;    // both tables, rounded up to chunks
};
/// Splits an extent of 'extent_bytes' whose tables are those of one of 'laid_out_bytes'.
extent_split split_extent(std::uint64_t extent_bytes, std::uint64_t chunk_bytes,
                          std::uint64_t laid_out_bytes) noexcept;
inline extent_split split_extent(std::uint64_t extent_bytes, std::uint64_t chunk_bytes) noexcept {
    return split_extent(extent_bytes, chunk_bytes, extent_bytes);
}
/// The length of the shortest extent that has so many chunks.
std::uint64_t extent_bytes_for(std::uint64_t chunks, std::uint64_t chunk_bytes) noexcept;

/// The number of bytes by which each of 'count' extents must lengthen a pool of 'size_bytes' so
/// that they reach the format's limit.
std::uint64_t least_step(std::uint64_t size_bytes, std::uint32_t count) noexcept;

} // namespace hf
