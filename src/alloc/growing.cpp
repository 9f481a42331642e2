// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where chunks come from when no free one is at hand.
#include <alloc/allocator.hpp>
#include <base/assert.hpp>

namespace hf {

growth_bound allocator::data_bound() const noexcept {
    const std::uint64_t end = file_->shape().max_bytes - log_reserve_, limit = growth_limit_;
    if (limit < end) return {limit, growth_bound::limit_growth};
    return {end, growth_bound::log_reserve};
}

bool allocator::limit_growth(std::uint64_t bytes) {
    growth_limit_ = bytes;
    const std::scoped_lock held{chunks_};
    return !file_->growth_ended();
}

/// Offset of 'chunks' free neighbours before 'until' in a pool that grows for them if it must, or 0.
/// Requires: chunks_ held.
std::uint64_t allocator::take_chunks(std::uint64_t chunks, const growth_bound& until) {
    const std::uint64_t end = until.bytes;
    for (std::uint64_t refused = 0;;) {
        if (const std::uint64_t found = take_free(chunks, end)) return found;
        // A full disk is asked again when there is twice as much to ask it for, and at the end.
        if (holes_known_ > refused && fill_holes(chunks, end)) continue;
        if (holes_known_ > refused) refused = 2 * holes_known_;
        // To the end, once per open: about 50 ns a chunk, where the growth it spares costs
        // microseconds for each (and would make a pool larger with every opening).
        if (scan_more()) continue;
        if (holes_known_ > 0 && fill_holes(chunks, end)) continue;
        const auto grown = file_->grow(chunks * heap_.chunk_bytes(), until);
        if (!grown) return 0;
        take_in_growth();
    }
}

/// Every chunk before was scanned.
void allocator::take_in_growth() {
    const unsigned last = extents_known_ - 1;
    take_in_extents();
    for (unsigned i = last; i < extents_known_; ++i) {
        const heap_extent& e = heap_.extent_at(i);
        const std::uint64_t known = extents_[i].scanned;
        if (known == e.chunks) continue;
        extents_[i].scanned = e.chunks;
        add_free_run(e.data_offset + known * heap_.chunk_bytes(), e.chunks - known);
    }
}

} // namespace hf
