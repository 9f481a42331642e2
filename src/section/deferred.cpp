// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section asks of engines whose stores wait for the commit (section.hpp, 8).
#include <base/assert.hpp>
#include <section/section.hpp>

#include <algorithm>
#include <cstring>

namespace hf {
namespace {
// Of so much memory of a section's own its log has sums. More of it gets a fence of its own.
constexpr std::uint64_t summed_bytes_max = 64 << 10;
} // namespace

std::uint64_t section::defer(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return outside;
    if (!fresh(offset)) {
        refilled_ = refilled_ || in_filled(offset, bytes);
        return offset;
    }
    will_store(address, bytes);
    return outside;
}

/// Ends a section that has changed nothing but memory that it gives back: its epoch was never written.
void section::end_unlogged() {
    HF_ASSERT_SLOW(buffered() && !changes_blocks() && segments_.empty());
    dirty_.flush_all(medium_);
    release(unused_);
    // The section whose mark is due may name these as staged.
    if (mark_due_) freed_.insert(freed_.end(), unadopted_.begin(), unadopted_.end());
    else release(unadopted_);
    unadopted_.clear();
    epoch_ = --state_->epoch;
    HF_ASSERT_SLOW(idle());
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

void section::log_sum(record_kind kind, std::uint64_t offset, const filled_payload& sum) {
    append(kind, offset, sizeof sum, &sum);
    summed_first_ = summed_end_ == 0 ? offset : std::min(summed_first_, offset);
    summed_end_ = std::max(summed_end_, offset + sum.bytes);
}

/// A block that was staged is logged as one that the section took, with what was filled in there.
void section::log_adopted(block b, bool with_sums) {
    const auto whole = std::ranges::find_if(filled_, [&](const filled_bytes& f) {
        return f.offset == b.offset && pool_->blocks.durable().rounded(f.what.bytes) == b.bytes;
    });
    if (with_sums && whole != filled_.end())
        return log_sum(record_kind::own, b.offset, whole->what);
    append(record_kind::alloc, b.offset, b.bytes);
    for (const filled_bytes& f : filled_)
        if (with_sums && f.offset - b.offset < b.bytes)
            log_sum(record_kind::filled, f.offset, f.what);
}

void section::log_blocks() {
    HF_ASSERT_SLOW(running() && !log_begun_);
    start_log(nullptr, 0);
    std::uint64_t own_bytes = 0;
    for (block b : allocs_) {
        // Whole: what the section has not stored there may wait in a cache as well.
        if (medium_.loses_caches()) dirty_.add(base_ + b.offset, b.bytes);
        own_bytes += b.bytes;
    }
    const bool shares_fence = !medium_.keeps_order();
    const bool sums = shares_fence && own_bytes <= summed_bytes_max && !refilled_;
    for (block b : allocs_)
        if (sums)
            log_sum(record_kind::own, b.offset, {b.bytes, XXH3_64bits(base_ + b.offset, b.bytes)});
        else append(record_kind::alloc, b.offset, b.bytes);
    for (block b : adopted_) log_adopted(b, sums);
    const auto in_a_block_of = [](const auto& blocks, const filled_bytes& f) {
        return std::ranges::any_of(blocks, [&](block b) { return f.offset - b.offset < b.bytes; });
    };
    for (const filled_bytes& f : filled_) // in blocks that are still staged they may change
        if (sums && !in_a_block_of(adopted_, f) && !in_a_block_of(staged_, f))
            log_sum(record_kind::filled, f.offset, f.what);
    for (block b : frees_) append(record_kind::free, b.offset, b.bytes);
    if (sums || !shares_fence || doomed_ != doomed_by::nothing) return;
    dirty_.flush_all(medium_);
    // The memory's fence, and not the log's: that one takes the place of an older log (9).
    medium_.fence();
}

void section::log_new_bytes(const void* stores, std::uint64_t bytes, bool last) {
    if (doomed_ != doomed_by::nothing)
        return; // a record that found no room: the log is never whole
    append(record_kind::new_bytes, last, bytes, stores);
}

void section::make_log_durable() {
    dirty_.flush_all(medium_);
    fence_log();
}

/// Whether other threads can be told of them all. Without that the mark waits no more than they do (8).
bool section::may_leave_stores() const noexcept {
    return !buffered() || dirty_.is_short(lane_state::unfenced_max);
}

/// Tells which stores are left to the next fence (9): none, but where they are deferred.
void section::leave_stores() {
    HF_ASSERT_SLOW(may_leave_stores());
    HF_ASSERT_SLOW(!mark_due_ || state_->unfenced.load() == 0); // a section that stored nothing
    std::atomic_thread_fence(std::memory_order_release); // behind the fence of what is written over
    std::uint32_t count = 0;
    if (buffered())
        for (std::uintptr_t line : dirty_.lines())
            state_->unfenced_lines[count++].store(line, std::memory_order_relaxed);
    state_->unfenced.store(count, std::memory_order_relaxed);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    state_->summed_first.store(base + summed_first_, std::memory_order_relaxed);
    state_->summed_end.store(summed_end_ == 0 ? 0 : base + summed_end_, std::memory_order_relaxed);
    if (buffered()) dirty_.flush_all(medium_);
}

namespace {

/// Never torn: a reader without a lock may look.
void store_word(std::byte* to, const std::byte* from) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
}

} // namespace

void section::store_deferred(deferred_store where, const std::byte* granule) {
    std::byte* const to = base_ + where.offset();
    if (where.mask() == 0xffff) { // the dirty line noted once
        will_store(to, granule_bytes);
        for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes)
            store_word(to + w, granule + w);
        return;
    }
    for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes) {
        const unsigned bytes = where.mask() >> w & 0xff;
        if (bytes == 0xff) {
            will_store(to + w, word_bytes);
            store_word(to + w, granule + w);
            continue;
        }
        for (std::uint64_t i = 0; i < word_bytes; ++i) {
            if ((bytes >> i & 1) == 0) continue;
            will_store(to + w + i, 1);
            to[w + i] = granule[w + i];
        }
    }
}

} // namespace hf
