// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Disk space of free chunks, given back and taken again.  (5) of allocator.hpp, docs/internals/allocator.md
//
// The pool stores one bit about it: there may be holes (feature_holes). A chunk is durably free
// before it is in a free run, so no block lies in a hole. An open of a pool with that bit takes
// every free chunk for a hole.
#include <alloc/allocator.hpp>
#include <base/assert.hpp>
#include <base/line.hpp>

#include <algorithm>
#include <utility>

namespace hf {
namespace {

constexpr std::uint64_t piece_bytes = 16ULL << 20; // given back while others wait
constexpr std::uint64_t filled_bytes = 1ULL << 20; // taken again at once, where there is room

} // namespace

/// Gives space to all holes among these chunks, which are free. False: the disk does not, and says
/// why; none lost its place. Requires: chunks_ held.
bool allocator::fill(std::uint64_t offset, std::uint64_t chunks, status& why) {
    HF_ASSERT_SLOW(held_here(chunks_));
    const std::uint64_t chunk_bytes = heap_.chunk_bytes(), end = offset + chunks * chunk_bytes;
    for (auto hole = holes_.upper_bound(offset); offset < end;) {
        if (hole != holes_.begin() &&
            std::prev(hole)->first + std::prev(hole)->second * chunk_bytes > offset)
            --hole;
        if (hole == holes_.end() || hole->first >= end) return true;
        const std::uint64_t from = std::max(hole->first, offset);
        const std::uint64_t to = std::min(hole->first + hole->second * chunk_bytes, end);
        if (status had = file_->take_back(from, to - from); !had.ok()) {
            why = std::move(had);
            return false;
        }
        const std::uint64_t count = (to - from) / chunk_bytes;
        [[maybe_unused]] const bool carved = carve(holes_, from, count);
        HF_ASSERT_SLOW(carved);
        holes_known_ -= count;
        add_free_run(from, count);
        offset = to;
        hole = holes_.upper_bound(offset);
    }
    return true;
}

/// How many of these chunks, which are free, are holes. Requires: chunks_ held.
std::uint64_t allocator::holes_among(std::uint64_t offset, std::uint64_t chunks) const {
    const std::uint64_t chunk_bytes = heap_.chunk_bytes(), end = offset + chunks * chunk_bytes;
    std::uint64_t bytes = 0;
    auto hole = holes_.upper_bound(offset);
    if (hole != holes_.begin()) --hole;
    for (; hole != holes_.end() && hole->first < end; ++hole) {
        const std::uint64_t from = std::max(hole->first, offset);
        const std::uint64_t to = std::min(hole->first + hole->second * chunk_bytes, end);
        bytes += to > from ? to - from : 0;
    }
    return bytes / chunk_bytes;
}

/// Gives space to 'chunks' free neighbours before 'end', and to a few more if that is easy. False:
/// no such chunks were found, or the disk has refused, and 'why' says so. Requires: chunks_ held.
bool allocator::fill_holes(std::uint64_t chunks, std::uint64_t end, status& why) {
    HF_ASSERT_SLOW(held_here(chunks_));
    const std::uint64_t chunk_bytes = heap_.chunk_bytes();
    // The disk is not asked again for a size that it had no room for: a file system takes a while
    // to refuse each of thousands of holes, and every thread that needs chunks waits.
    std::uint64_t refused = ~std::uint64_t{0};
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
        // With what is free around it, holes and others: the first that has room is taken at its
        // start.
        std::uint64_t start = hole->first, stop = start + hole->second * chunk_bytes;
        auto after = free_runs_.lower_bound(start);
        if (after != free_runs_.begin())
            if (auto before = std::prev(after); touch(before->first, before->second, start))
                start = before->first;
        for (auto next = hole;;) {
            if (after != free_runs_.end() && after->first == stop &&
                touch(hole->first, (stop - hole->first) / chunk_bytes, stop)) {
                stop += after->second * chunk_bytes;
                ++after;
            } else if (++next; next != holes_.end() && next->first == stop &&
                               touch(hole->first, (stop - hole->first) / chunk_bytes, stop)) {
                stop += next->second * chunk_bytes;
            } else break;
        }
        stop = std::min(stop, end);
        if (start >= stop || (stop - start) / chunk_bytes < chunks) continue;
        const std::uint64_t easy =
            std::min((stop - start) / chunk_bytes, std::max(chunks, filled_bytes / chunk_bytes));
        const std::uint64_t first = hole->first; // fill() may end it
        const std::uint64_t lacking = holes_among(start, chunks);
        if (lacking >= refused) continue;
        if (fill(start, easy, why) || fill(start, chunks, why)) return true;
        refused = lacking;
        hole = holes_.find(first);
        if (hole == holes_.end()) return true; // some of it has space now: look again
    }
    return false;
}

result<std::uint64_t> allocator::trim() {
    std::uint64_t given = 0;
    for (std::uint64_t from = 0;;) {
        auto piece = trim_next(from);
        if (!piece) return piece;
        if (*piece == 0) return given;
        given += *piece;
    }
}

/// Gives back the first piece at 'from' or behind it, which moves on. 0: no piece was left.
result<std::uint64_t> allocator::trim_next(std::uint64_t& from) {
    std::scoped_lock held{chunks_};
    while (scan_more()) {}
    const std::uint64_t chunk_bytes = heap_.chunk_bytes();
    const std::uint64_t end = file_->shape().max_bytes - log_reserve_;
    auto run = free_runs_.upper_bound(from);
    if (run != free_runs_.begin() &&
        std::prev(run)->first + std::prev(run)->second * chunk_bytes > from)
        --run;
    if (run == free_runs_.end()) return std::uint64_t{0};
    const std::uint64_t start = std::max(run->first, from);
    const std::uint64_t stop = std::min(run->first + run->second * chunk_bytes, end);
    if (start >= stop) return std::uint64_t{0};
    const std::uint64_t count = std::min((stop - start) / chunk_bytes,
                                         std::max(piece_bytes / chunk_bytes, std::uint64_t{1}));
    from = start + count * chunk_bytes;
    [[maybe_unused]] const bool carved = carve(free_runs_, start, count);
    HF_ASSERT_SLOW(carved);
    free_known_ -= count;
    add_run(holes_, start, count); // without memory for it they are out of circulation (4)
    holes_known_ += count;
    if (status s = file_->give_back(start, count * chunk_bytes); !s.ok()) return s;
    return count * chunk_bytes;
}

std::uint64_t allocator::hole_bytes() const {
    std::scoped_lock held{chunks_};
    return holes_known_ * heap_.chunk_bytes();
}

} // namespace hf
