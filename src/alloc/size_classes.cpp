// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <alloc/size_classes.hpp>
#include <base/assert.hpp>
#include <base/line.hpp>

namespace hf {

size_classes::size_classes(std::uint64_t chunk_bytes) {
    HF_ASSERT(chunk_bytes <= chunk_bytes_max);
    const auto add = [&](std::uint64_t size) {
        HF_ASSERT(count_ < sizes_.size());
        const std::uint64_t granules = size / granule_bytes;
        sizes_[count_] = static_cast<std::uint32_t>(size);
        slots_[count_] = static_cast<std::uint32_t>(chunk_bytes / size);
        inverses_[count_++] = ((std::uint64_t{1} << 32) + granules - 1) / granules;
        slab_max_bytes_ = size;
    };
    for (std::uint64_t size = granule_bytes; size <= chunk_bytes / 64; size += granule_bytes)
        add(size);
    for (std::uint64_t fit = 63; fit >= 2; --fit) {
        const std::uint64_t size = round_down(chunk_bytes / fit, granule_bytes);
        if (size > slab_max_bytes_) add(size);
    }
    unsigned size_class = 0;
    for (std::uint64_t g = 0; g <= slab_max_bytes_ / granule_bytes; ++g) {
        if (g * granule_bytes > sizes_[size_class]) ++size_class;
        by_granules_[g] = static_cast<std::uint8_t>(size_class);
    }
    HF_ASSERT_SLOW(valid(chunk_bytes));
}

bool size_classes::valid(std::uint64_t chunk_bytes) const noexcept {
    std::uint64_t below = 0;
    for (unsigned c = 0; c < count(); ++c) {
        const std::uint64_t size = sizes_[c];
        if (size <= below || size % granule_bytes != 0) return false;
        if (slots_[c] < 2 || slots_[c] * size > chunk_bytes) return false;
        for (std::uint64_t within = 0; within < chunk_bytes; within += granule_bytes)
            if (is_slot(within, c) != (within % size == 0 && within + size <= chunk_bytes))
                return false;
        if (class_of(size) != c || class_of(below + 1) != c) return false;
        below = size;
    }
    return true;
}

const size_classes& size_classes::for_chunks_of(std::uint64_t chunk_bytes) {
    // Never destroyed: pools may outlive static destructors.
    static const auto &small = *new size_classes(4096), &large = *new size_classes(65536);
    HF_ASSERT(chunk_bytes == 4096 || chunk_bytes == 65536);
    return chunk_bytes == 4096 ? small : large;
}

} // namespace hf
