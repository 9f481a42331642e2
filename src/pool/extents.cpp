// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/extents.hpp>
#include <pool/header.hpp>

#include <cmath>

namespace hf {
namespace {

constexpr std::uint64_t entry_bytes = 8; // of a chunk, in the first table

std::uint64_t entry_table_bytes(std::uint64_t chunks) noexcept {
    return round_up(chunks * entry_bytes, line_bytes);
}
std::uint64_t table_bytes(std::uint64_t chunks, std::uint64_t chunk_bytes) noexcept {
    return entry_table_bytes(chunks) + chunks * (chunk_bytes / granule_bytes / 8);
}

} // namespace

extent_split split_extent(std::uint64_t extent_bytes, std::uint64_t chunk_bytes,
                          std::uint64_t laid_out_bytes) noexcept {
    HF_ASSERT_SLOW(extent_bytes <= laid_out_bytes);
    const std::uint64_t bit_bytes = chunk_bytes / granule_bytes / 8;
    const std::uint64_t total = laid_out_bytes / chunk_bytes;
    // The most chunks whose tables still fit in front of them.
    std::uint64_t chunks = total * chunk_bytes / (chunk_bytes + entry_bytes + bit_bytes);
    while (chunks > 0 && table_bytes(chunks, chunk_bytes) > (total - chunks) * chunk_bytes)
        --chunks;
    HF_ASSERT_SLOW(chunks == 0 ||
                   table_bytes(chunks, chunk_bytes) <= (total - chunks) * chunk_bytes);
    HF_ASSERT_SLOW(chunks < total || total == 0);
    const std::uint64_t tables = (total - chunks) * chunk_bytes;
    const std::uint64_t there = extent_bytes < tables ? 0 : (extent_bytes - tables) / chunk_bytes;
    return {there, chunks, entry_table_bytes(chunks), tables};
}

std::uint64_t extent_bytes_for(std::uint64_t chunks, std::uint64_t chunk_bytes) noexcept {
    std::uint64_t bytes =
        chunks * chunk_bytes + round_up(table_bytes(chunks, chunk_bytes), chunk_bytes);
    while (split_extent(bytes, chunk_bytes).chunks < chunks) bytes += chunk_bytes;
    return bytes;
}

std::uint64_t least_step(std::uint64_t size_bytes, std::uint32_t count) noexcept {
    if (size_bytes >= pool_bytes_max) return 0;
    if (count == 0) return pool_bytes_max - size_bytes;
    const double times = static_cast<double>(pool_bytes_max) / static_cast<double>(size_bytes);
    const double each = std::exp2(std::log2(times) / count) - 1;
    return static_cast<std::uint64_t>(std::ceil(static_cast<double>(size_bytes) * each));
}

} // namespace hf
