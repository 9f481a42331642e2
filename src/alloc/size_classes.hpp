// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block sizes of a heap with a given chunk size: every multiple of 16 up to a 64th of the chunk,
// then the largest sizes that fit a chunk 63, 62 … 2 times. Rounding wastes at most 1/16 of a block
// up to a quarter of a chunk's 16th, and never more than a third.
#pragma once

#include <base/assert.hpp>
#include <pool/extents.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace hf {

class size_classes {
public:
    explicit size_classes(std::uint64_t chunk_bytes);
    /// Those of chunks of that size, made once. Requires: 4 KiB or 64 KiB.
    static const size_classes& for_chunks_of(std::uint64_t chunk_bytes);

    std::uint64_t slab_max_bytes() const noexcept { return slab_max_bytes_; }
    /// Class of the smallest block that holds 'bytes'. Requires: bytes <= slab_max_bytes().
    unsigned class_of(std::uint64_t bytes) const noexcept {
        HF_ASSERT_SLOW(bytes <= slab_max_bytes());
        return by_granules_[(bytes + granule_bytes - 1) / granule_bytes];
    }
    std::uint64_t block_bytes(unsigned size_class) const noexcept {
        HF_ASSERT_SLOW(size_class < count());
        return sizes_[size_class];
    }
    std::uint32_t slots(unsigned size_class) const noexcept {
        HF_ASSERT_SLOW(size_class < count());
        return slots_[size_class];
    }
    /// Whether a block of that class can start so many bytes into a chunk.
    bool is_slot(std::uint64_t within, unsigned size_class) const noexcept {
        HF_ASSERT_SLOW(within < (1u << 16) * granule_bytes);
        // A product in place of a quotient: exact for 16 bits.
        const std::uint64_t slot = within / granule_bytes * inverses_[size_class] >> 32;
        return slot * sizes_[size_class] == within && slot < slots_[size_class];
    }
    unsigned count() const noexcept { return count_; }

private:
    /// Whether sizes ascend by whole granules, at least two blocks of each fit a chunk, and every
    /// request gets the smallest class that holds it.
    bool valid(std::uint64_t chunk_bytes) const noexcept;

    static constexpr std::uint64_t chunk_bytes_max = 65536;

    unsigned count_ = 0;
    std::uint64_t slab_max_bytes_ = 0;
    // In arrays: what is taken and freed costs few loads.
    std::array<std::uint32_t, 256> sizes_{};    // ascending, multiples of granule_bytes
    std::array<std::uint32_t, 256> slots_{};    // blocks per chunk
    std::array<std::uint64_t, 256> inverses_{}; // 2^32 over the granules of a block, rounded up
    std::array<std::uint8_t, chunk_bytes_max / 2 / granule_bytes + 1> by_granules_{}; // -> class
};

} // namespace hf
