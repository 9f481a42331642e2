// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Growth: where chunks come from when no free one is at hand, and the refusal of a pool that does
// not grow.
#include <alloc/allocator.hpp>
#include <base/assert.hpp>
#include <base/log.hpp>
#include <pool/file_checks.hpp>

#include <fmt/format.h>

#include <new>

namespace hf {

growth_bound allocator::data_bound() const noexcept {
    const std::uint64_t end = file_->shape().max_bytes - log_reserve_, limit = growth_limit_;
    if (limit < end) return {limit, growth_bound::limit_growth};
    return {end, growth_bound::log_reserve};
}

bool allocator::limit_growth(std::uint64_t bytes) {
    growth_limit_ = bytes;
    const std::scoped_lock held{chunks_};
    if (file_->size_bytes() >= data_bound().bytes) full_.store(true, std::memory_order_relaxed);
    return !file_->growth_ended();
}

/// Offset of 'chunks' free neighbours before 'until' in a pool that grows for them if it must, or
/// 0: refused_ says why.
/// Requires: chunks_ held.
std::uint64_t allocator::take_chunks(std::uint64_t chunks, const growth_bound& until) {
    const std::uint64_t found = find_chunks(chunks, until);
    if (found == 0) full_.store(true, std::memory_order_relaxed);
    else if (is_full() && !is_scarce()) full_.store(false, std::memory_order_relaxed);
    return found;
}

/// Whether less than a quarter of the chunks are free, and all are known. Requires: chunks_ held.
bool allocator::is_scarce() const noexcept {
    HF_ASSERT_SLOW(held_here(chunks_));
    std::uint64_t chunks = 0;
    for (unsigned i = 0; i < extents_known_; ++i) {
        if (extents_[i].scanned < heap_.extent_at(i).chunks) return false;
        chunks += heap_.extent_at(i).chunks;
    }
    return free_known_ + holes_known_ < chunks / 4;
}

std::uint64_t allocator::find_chunks(std::uint64_t chunks, const growth_bound& until) {
    const std::uint64_t end = until.bytes;
    status why; // a hole got no space
    for (std::uint64_t refused = 0;;) {
        if (const std::uint64_t found = take_free(chunks, end)) return found;
        // A full disk is asked again when there is twice as much to ask it for, and at the end.
        if (holes_known_ > refused && fill_holes(chunks, end, why)) continue;
        if (holes_known_ > refused) refused = 2 * holes_known_;
        // To the end, once per open: about 50 ns a chunk, where the growth it spares costs
        // microseconds for each (and would make a pool larger with every opening).
        if (scan_more()) continue;
        if (holes_known_ > 0 && fill_holes(chunks, end, why)) continue;
        const auto grown = file_->grow(chunks * heap_.chunk_bytes(), until);
        if (!grown) {
            // The disk's refusal of a hole explains more than a limit.
            note_refused(why.ok() || (grown.error().code() != errc::pool_full) ? grown.error()
                                                                               : why);
            return 0;
        }
        refused_ = {};
        full_.store(false, std::memory_order_relaxed);
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

/// Keeps why; says so in the log where the next step is not the program's. An error of the disk
/// stays until the pool has grown: a limit that is met meanwhile is no news. Requires: chunks_
/// held.
void allocator::note_refused(const status& why) {
    HF_ASSERT_SLOW(held_here(chunks_));
    HF_ASSERT_SLOW(!why.ok());
    const bool by_limit = why.code() == errc::pool_full;
    if (by_limit && !refused_.ok() && refused_.code() != errc::pool_full) return;
    const bool news = refused_.code() != why.code() && why.code() != errc::permission;
    if (!by_limit && news)
        say(severity::error, fmt::format("the pool does not grow: {}", why.what()).c_str());
    refused_ = why;
}

status allocator::why_full() const {
    const std::scoped_lock held{chunks_};
    return refused_;
}

status allocator::full(const std::string& what, const std::string& more) const {
    const status why = why_full();
    const std::string& path = file_->path();
    return refusal(path, why.ok() ? errc::pool_full : why.code(),
                   fmt::format("no room for {}: the pool has {} of at most {} bytes{}{}{}", what,
                               file_->size_bytes(), file_->shape().max_bytes, more,
                               why.ok() ? "" : "; ", text_of(why, path)));
}

} // namespace hf
