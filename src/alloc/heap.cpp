// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <alloc/heap.hpp>
#include <base/assert.hpp>
#include <base/line.hpp>

#include <algorithm>

namespace hf {

heap::heap(pool_file& file)
    : file_(&file), chunk_bytes_(file.shape().chunk_bytes),
      chunk_shift_(static_cast<unsigned>(std::countr_zero(chunk_bytes_))),
      classes_(size_classes::for_chunks_of(chunk_bytes_)) {
    refresh();
}

void heap::refresh() noexcept {
    const auto extents = file_->extents();
    HF_ASSERT(extent_count() <= extents.size());
    HF_ASSERT(extents.size() <= extents_.size());
    const unsigned known = extent_count();
    for (unsigned i = known == 0 ? 0 : known - 1; i < extents.size(); ++i) {
        const extent_split split =
            split_extent(extents[i].size_bytes, chunk_bytes_, file_->laid_out_bytes(i));
        heap_extent& e = extents_[i];
        if (i >= known) {
            std::byte* at = file_->base() + extents[i].offset_bytes;
            e.data_offset = extents[i].offset_bytes + split.metadata_bytes;
            e.chunks_max = split.chunks_max;
            e.entries = reinterpret_cast<std::uint64_t*>(at);
            e.bits = reinterpret_cast<std::uint64_t*>(at + split.entry_table_bytes);
            e.metadata_bytes = split.metadata_bytes;
        }
        HF_ASSERT(e.chunks <= split.chunks);
        e.chunks.store(split.chunks, std::memory_order_release); // it may have been lengthened
        e.data_bytes.store(split.chunks * chunk_bytes_, std::memory_order_release);
        count_.store(std::max(known, i + 1), std::memory_order_release);
        newest_.store(&extents_[count_ - 1], std::memory_order_release);
    }
    HF_ASSERT_SLOW(valid());
}

bool heap::valid() const noexcept {
    const std::byte* const base = file_->base();
    std::uint64_t end = 0;
    for (unsigned i = 0; i < extent_count(); ++i) {
        const heap_extent& e = extents_[i];
        const auto tables =
            static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(e.entries) - base);
        if (tables < end || tables + e.metadata_bytes != e.data_offset) return false;
        if (e.data_bytes != e.chunks * chunk_bytes_) return false;
        if (e.chunks > e.chunks_max || e.bits < e.entries + e.chunks_max) return false;
        const std::uint64_t bit_words = e.chunks_max * (chunk_bytes_ / granule_bytes / 64);
        if (reinterpret_cast<std::byte*>(e.bits + bit_words) > base + e.data_offset) return false;
        end = e.data_offset + e.chunks * chunk_bytes_;
    }
    return end <= file_->shape().max_bytes;
}

std::uint64_t heap::rounded(std::uint64_t bytes) const noexcept {
    if (bytes > file_->shape().max_bytes) return 0;
    if (!is_slab(bytes)) return round_up(bytes, chunk_bytes_);
    const std::uint64_t size = classes_.block_bytes(classes_.class_of(bytes));
    HF_ASSERT_SLOW(size >= bytes);
    HF_ASSERT_SLOW(is_slab(size)); // rounding again changes nothing
    return size;
}

bool heap::bit(std::uint64_t offset) const noexcept {
    const unsigned i = extent_of(offset);
    if (i == extent_count()) return false;
    const std::uint64_t g = (offset - extents_[i].data_offset) / granule_bytes;
    return (std::atomic_ref(extents_[i].bits[g / 64]).load(std::memory_order_acquire) >> g % 64 &
            1) != 0;
}

bool heap::chunk_empty(const heap_extent& e, std::uint64_t chunk) const noexcept {
    HF_ASSERT_SLOW(chunk < e.chunks);
    const std::uint64_t words = chunk_bytes_ / granule_bytes / 64;
    for (std::uint64_t w = 0; w < words; ++w)
        if (std::atomic_ref(e.bits[chunk * words + w]).load(std::memory_order_acquire) != 0)
            return false;
    return true;
}

std::uint64_t heap::bits_set() const noexcept {
    std::uint64_t count = 0;
    for (unsigned i = 0; i < extent_count(); ++i) {
        const std::uint64_t words = extents_[i].chunks * (chunk_bytes_ / granule_bytes / 64);
        for (std::uint64_t w = 0; w < words; ++w)
            count += static_cast<unsigned>(std::popcount(extents_[i].bits[w]));
    }
    return count;
}

std::vector<extent> heap::spare() const {
    std::vector<extent> out;
    for (unsigned i = 0; i < extent_count(); ++i) {
        const heap_extent& e = extents_[i];
        for (std::uint64_t c = 0; c < e.chunks;) {
            const std::uint64_t start = e.data_offset + c * chunk_bytes_;
            const chunk_entry what = entry(e, c);
            std::uint64_t taken = chunk_empty(e, c) ? 0 : 1;
            if (taken != 0 && what.kind() == chunk_kind::large && bit(start))
                taken = std::clamp<std::uint64_t>(what.run_chunks(), 1, e.chunks - c);
            c += std::max<std::uint64_t>(taken, 1);
            if (taken != 0) continue;
            if (!out.empty() && out.back().offset_bytes + out.back().size_bytes == start)
                out.back().size_bytes += chunk_bytes_;
            else out.push_back({start, chunk_bytes_});
        }
    }
    return out;
}

bool heap::may_hold(block b) const noexcept {
    HF_ASSERT_SLOW(well_formed(b));
    if (allocated_at(b.offset).bytes == b.bytes) return true;
    const bool slab = is_slab(b.bytes);
    if (slab && allocates_here(b)) return true;
    const heap_extent& e = extents_[extent_of(b.offset)];
    const std::uint64_t first = chunk_number(e, b.offset);
    for (std::uint64_t c = 0; c < (slab ? 1 : b.bytes >> chunk_shift_); ++c)
        if (!chunk_empty(e, first + c)) return false;
    return true;
}

bool heap::well_formed(block b) const noexcept {
    const unsigned i = extent_of(b.offset);
    if (i == extent_count() || b.bytes == 0 || b.bytes != rounded(b.bytes)) return false;
    const heap_extent& e = extents_[i];
    const std::uint64_t within = in_chunk(e, b.offset);
    if (is_slab(b.bytes)) return classes_.is_slot(within, classes_.class_of(b.bytes));
    return within == 0 && b.bytes <= e.chunks * chunk_bytes_ - (b.offset - e.data_offset);
}

block heap::allocated_large(block b) const noexcept {
    return {b.offset, well_formed(b) ? b.bytes : 0};
}

} // namespace hf
