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
// The same of a section of engine undo, whose next waits for them.
constexpr std::uint64_t left_bytes_max = 16 * line_bytes;
} // namespace

/// No line is noted: all of such memory is written back.
void section::store_to_own(const void* address, std::uint64_t bytes) {
    persist::thread_counters().pm_bytes += bytes;
    trace::announce(trace::store, address, bytes);
}

/// Ends a section that has changed nothing but memory that it gives back: its epoch was never written.
void section::end_unlogged() {
    HF_ASSERT_SLOW(buffered() && !changes_blocks() && blocks_.segments().empty());
    marks_.release(blocks_.unused());
    // The section whose mark is due may name these as staged.
    std::vector<block>& unadopted = blocks_.unadopted();
    std::vector<block>& freed = marks_.freed();
    if (marks_.due()) freed.insert(freed.end(), unadopted.begin(), unadopted.end());
    else marks_.release(unadopted);
    unadopted.clear();
    epoch_ = --marks_.state().epoch;
    HF_ASSERT_SLOW(idle());
    if (turns_ != nullptr) [[unlikely]]
        turns_->unlock();
}

/// A block that was staged is logged as one that the section took, with what was filled in there.
void section::log_adopted(block b, bool with_sums) {
    const std::span filled = prepared_.filled();
    const auto whole = std::ranges::find_if(
        filled, [&](const filled_bytes& f) { return f.fill(pool_->blocks.durable(), b); });
    if (with_sums && whole != filled.end())
        return append(record_kind::own, b.offset, sizeof whole->what, &whole->what);
    append(record_kind::alloc, b.offset, b.bytes);
    for (const filled_bytes& f : filled)
        if (with_sums && f.lies_in(b))
            append(record_kind::filled, f.offset, sizeof f.what, &f.what);
}

void section::log_blocks() {
    HF_ASSERT_SLOW(running() && !log_begun_);
    for (block b : blocks_.freed()) settle_under(b.offset, b.bytes);
    // What the section before has left to the fence that is to come (9). Not sooner: a locked instruction,
    // as when a lock is taken, waits for lines on their way.
    if (marks_.stores_left()) static_cast<void>(marks_.left(epoch_ - 1).flush(medium_));
    start_log(nullptr, 0);
    std::uint64_t own_bytes = 0;
    for (block b : blocks_.taken()) own_bytes += b.bytes;
    const bool shares_fence = !medium_.keeps_order();
    const bool sums = shares_fence && own_bytes <= summed_bytes_max && !refilled_;
    for (block b : blocks_.taken()) {
        filled_payload whole{b.bytes, 0};
        if (sums) whole.sum = XXH3_64bits(base_ + b.offset, b.bytes);
        // Whole: what the section has not stored there may wait in a cache as well.
        medium_.flush(base_ + b.offset, b.bytes);
        if (sums) append(record_kind::own, b.offset, sizeof whole, &whole);
        else append(record_kind::alloc, b.offset, b.bytes);
    }
    for (block b : blocks_.adopted()) log_adopted(b, sums);
    const auto in_a_block_of = [](const auto& blocks, const filled_bytes& f) {
        return std::ranges::any_of(blocks, [&](block b) { return f.lies_in(b); });
    };
    // In blocks that are still staged they may change.
    for (const filled_bytes& f : prepared_.filled())
        if (sums && !in_a_block_of(blocks_.adopted(), f) && !in_a_block_of(prepared_.staged(), f))
            append(record_kind::filled, f.offset, sizeof f.what, &f.what);
    for (block b : blocks_.freed()) append(record_kind::free, b.offset, b.bytes);
    if (sums || !shares_fence || doomed_ != doomed_by::nothing) return;
    // The memory's fence, and not the log's: that one takes the place of an older log (9).
    medium_.fence();
}

void section::log_new_bytes(const void* stores, std::uint64_t bytes, bool last) {
    if (doomed_ != doomed_by::nothing)
        return; // a record that found no room: the log is never whole
    append(record_kind::new_bytes, last, bytes, stores);
}

void section::make_log_durable() {
    log_.fill_line();
    medium_.fence();
    unfenced_ = false;
    marks_.log_fenced();
}

/// Whether other threads can be told of them all. Without that the mark waits no more than they do (8).
bool section::may_leave_stores() const noexcept { return dirty_.is_short(left_stores::lines_max); }

/// Tells other threads of what memory the log has sums (10).
void section::leave_sums() {
    left_stores& left = marks_.left(epoch_);
    if (engine_->verb == recovery_verb::roll_back) return; // it has none
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    for (const filled_bytes& f : prepared_.filled())
        left.add_filled(base + f.offset, base + f.offset + f.what.bytes);
}

/// Tells the next section, and other threads, what is left to the next fence, and what the log stands for (9).
/// 'deferred': so many of the lines are no allocator's.
void section::leave_stores(std::size_t deferred) {
    HF_ASSERT_SLOW(may_leave_stores());
    HF_ASSERT_SLOW(!marks_.due()); // what stood here before is written over, durably
    if (buffered()) marks_.no_longer_lazy();
    left_stores& left = marks_.left(epoch_);
    left.start(dirty_.lines(), deferred);
    const auto base = reinterpret_cast<std::uintptr_t>(base_);
    const auto add = [&](block b) { left.add_own(base + b.offset, base + b.offset + b.bytes); };
    std::ranges::for_each(blocks_.taken(), add);
    std::ranges::for_each(blocks_.adopted(), add);
    if (!buffered()) // a constructor may have stored to a lock that is in no fresh memory: upholds section.hpp (10)
        for (const stored_ranges::range& l : left_) add({l.offset, l.bytes});
    leave_sums();
    if (buffered()) pool_->lanes.note_deferring(marks_.lane());
    else marks_.state().older_sums.store(true, std::memory_order_release);
    dirty_.forget(); // the next section flushes them
}

/// Whether the section may leave its stores to the next (11): its log tells recovery what it stored to, and which
/// blocks it has taken; and its blocks are small, or their sum would cost more than the fence.
bool section::may_leave_to_next() {
    HF_ASSERT_SLOW(summing_ && blocks_.adopted().empty() && blocks_.unadopted().empty());
    if (blocks_.gives_up() || !blocks_.segments().empty()) return false;
    std::uint64_t own_bytes = 0;
    for (block b : blocks_.taken()) own_bytes += b.bytes;
    if (own_bytes > left_bytes_max || !marks_.may_leave_out()) return false;
    if (unfenced_) fence();         // the log ends here: another section may write over it
    for (block b : blocks_.taken()) // whole: what it has not stored there has a sum as well
        dirty_.add(base_ + b.offset, b.bytes);
    return may_leave_stores();
}

namespace {

/// Never torn: a reader without a lock may look.
void store_word(std::byte* to, const std::byte* from) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
}

} // namespace

void section::note_deferred(std::uint64_t offset, std::uint64_t granules) {
    // In pieces that are listed line by line: other threads are told of lines.
    constexpr std::uint64_t piece = 8 * line_bytes;
    for (std::uint64_t left = granules * granule_bytes, now; left > 0; offset += now, left -= now) {
        now = std::min(left, piece);
        will_store(base_ + offset, now);
    }
}

void section::store_deferred(deferred_store where, const std::byte* granule) {
    std::byte* const to = base_ + where.offset();
    if (where.mask() == 0xffff) {
        for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes)
            store_word(to + w, granule + w);
        return;
    }
    if (where.mask() == 0xff || where.mask() == 0xff00) { // which of them nobody can foretell
        const std::uint64_t w = where.mask() & 1 ? 0 : word_bytes;
        will_store(to + w, word_bytes);
        return store_word(to + w, granule + w);
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
