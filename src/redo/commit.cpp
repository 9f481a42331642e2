// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The commit of a section of engine redo: its log, then its stores; and how one is taken back. (1)
// and (2) stand in protocol.hpp.
#include <base/assert.hpp>
#include <base/checksum.hpp>
#include <redo/protocol.hpp>
#include <section/kept_pointers.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

namespace hf::redo {
namespace {

// A log has sums of so much memory of the section's own. More of it gets a fence of its own.
constexpr std::uint64_t summed_bytes_max = 64 << 10;

/// 0xff in each byte of a word that has its bit in 'mask'.
constexpr std::uint64_t bytes_of(unsigned mask) noexcept {
    constexpr std::uint64_t each = 0x0101010101010101;
    const std::uint64_t a_bit = mask * each & 0x8040201008040201; // the byte's own
    return ((a_bit + 0x7f * each) & 0x80 * each) / 0x80 * 0xff;
}
static_assert(bytes_of(0) == 0 && bytes_of(0xff) == ~std::uint64_t{0});
static_assert(bytes_of(0x81) == 0xff000000000000ff && bytes_of(0x40) == 0x00ff000000000000);

/// Writes those words of the granule behind each other that have bytes to be stored; 0 for bytes
/// that are not, never what was here before. Returns how many bytes. Without a jump: which word it
/// is nobody can foretell.
std::uint64_t put_words(std::byte* to, const buffered_run& g) noexcept {
    std::uint64_t used = 0;
    for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes) {
        const unsigned mask = g.mask >> w & 0xff;
        std::uint64_t word = 0;
        std::memcpy(&word, g.bytes + w, word_bytes);
        word &= bytes_of(mask);
        std::memcpy(to + used, &word, word_bytes);
        used += mask != 0 ? word_bytes : 0;
    }
    return used;
}

/// Never torn: a reader without a lock may look.
void store_word(std::byte* to, const std::byte* from) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
}

} // namespace

template <class Medium>
void redo_protocol<Medium>::begin(const hf_txfunc& function, const void* /*args*/) {
    in_.begin(*this, function, false); // it stores when it knows what
    forget();
    hf_redo_filter = filter_.words();
    refilled_ = false;
    log_begun_ = false;
    doomed_ = doomed_by::nothing;
}

template <class Medium>
void redo_protocol<Medium>::note(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset == section::outside || bytes == 0) return;
    if (in_.fresh(offset)) in_.store_to_own(address, bytes);
    else in_.note_store(address, bytes);
}

/// Other threads' logs stand for nothing that the section changes, at an ordering point or two
/// where they did.
template <> void redo_protocol<fenced_medium>::settle_others() {
    const auto settle_under = [&](std::uint64_t offset, std::uint64_t bytes) {
        in_.marks().settle_under(reinterpret_cast<std::uintptr_t>(base_) + offset, bytes);
    };
    write_buffer::runs all(buffer_);
    for (buffered_run r; all.next(r);) settle_under(r.offset, r.granules * granule_bytes);
    for (block b : in_.blocks().freed()) settle_under(b.offset, b.bytes);
}
template <> void redo_protocol<ordered_medium>::settle_others() {} // no log does

/// A block that was staged is logged as one that the section took, with what was filled in there.
template <> void redo_protocol<fenced_medium>::log_adopted(block b, bool with_sums) {
    const std::span filled = in_.prepared().filled();
    const auto whole = std::ranges::find_if(
        filled, [&](const filled_bytes& f) { return f.fill(in_.pool().blocks.durable(), b); });
    if (with_sums && whole != filled.end())
        return in_.append(record_kind::own, b.offset, sizeof whole->what, &whole->what);
    in_.append(record_kind::alloc, b.offset, b.bytes);
    for (const filled_bytes& f : filled)
        if (with_sums && f.lies_in(b))
            in_.append(record_kind::filled, f.offset, sizeof f.what, &f.what);
}

/// Logs that the section began, and what becomes of its blocks.
template <> void redo_protocol<ordered_medium>::log_blocks() {
    HF_ASSERT_SLOW(in_.running() && !log_begun_);
    in_.start_log({.staged = false});
    log_begun_ = true;
    for (block b : in_.blocks().taken()) in_.append(record_kind::alloc, b.offset, b.bytes);
    for (block b : in_.blocks().adopted()) in_.append(record_kind::alloc, b.offset, b.bytes);
    for (block b : in_.blocks().freed()) in_.append(record_kind::free, b.offset, b.bytes);
}

/// The same, with the sums of its own memory (1).
template <> void redo_protocol<fenced_medium>::log_blocks() {
    HF_ASSERT_SLOW(in_.running() && !log_begun_);
    // The stores that the section before has left wait for the log's fence (2). They are not
    // flushed sooner: a locked instruction, as when a lock is taken, waits for lines on their way.
    if (in_.marks().stores_left())
        static_cast<void>(in_.marks().left(in_.epoch() - 1).flush(in_.medium()));
    in_.start_log({.staged = false});
    log_begun_ = true;
    std::uint64_t own_bytes = 0;
    for (block b : in_.blocks().taken()) own_bytes += b.bytes;
    const bool sums = own_bytes <= summed_bytes_max && !refilled_;
    for (block b : in_.blocks().taken()) {
        filled_payload whole{b.bytes, 0};
        if (sums) whole.sum = XXH3_64bits(base_ + b.offset, b.bytes);
        // Whole: what the section has not stored there may wait in a cache as well.
        in_.medium().flush(base_ + b.offset, b.bytes);
        if (sums) in_.append(record_kind::own, b.offset, sizeof whole, &whole);
        else in_.append(record_kind::alloc, b.offset, b.bytes);
    }
    for (block b : in_.blocks().adopted()) log_adopted(b, sums);
    const auto in_a_block_of = [](const auto& blocks, const filled_bytes& f) {
        return std::ranges::any_of(blocks, [&](block b) { return f.lies_in(b); });
    };
    // In blocks that are still staged they may change.
    for (const filled_bytes& f : in_.prepared().filled())
        if (sums && !in_a_block_of(in_.blocks().adopted(), f) &&
            !in_a_block_of(in_.prepared().staged(), f))
            in_.append(record_kind::filled, f.offset, sizeof f.what, &f.what);
    for (block b : in_.blocks().freed()) in_.append(record_kind::free, b.offset, b.bytes);
    if (sums || doomed_ != doomed_by::nothing) return;
    // The memory's fence, and not the log's: that one takes the place of an older log (2).
    in_.medium().fence();
}

/// They come in several calls; 'last': the last of them.
template <class Medium>
void redo_protocol<Medium>::log_new_bytes(const void* stores, std::uint64_t bytes, bool last) {
    if (doomed_ != doomed_by::nothing)
        return; // a record that found no room: the log is never whole
    in_.append(record_kind::new_bytes, last, bytes, stores);
}

/// Writes what waits as new_bytes records.
template <class Medium>
void redo_protocol<Medium>::log_stores() {
    alignas(8) std::byte entries[512];
    std::uint64_t used = 0;
    const auto make_room = [&](std::uint64_t bytes) {
        if (used + bytes <= sizeof entries) return;
        log_new_bytes(entries, used, false);
        used = 0;
    };
    const auto put_head = [&](const auto& head) {
        std::memcpy(entries + used, &head, sizeof head);
        used += sizeof head;
    };
    write_buffer::runs all(buffer_);
    for (buffered_run r; all.next(r);) {
        while (r.granules >= granules_in_run_min) {
            make_room(sizeof(deferred_run) + granules_in_run_min * granule_bytes);
            const std::uint64_t here = std::min(
                r.granules, (sizeof entries - used - sizeof(deferred_run)) / granule_bytes);
            put_head(deferred_run{{r.offset << 16}, here});
            std::memcpy(entries + used, r.bytes, here * granule_bytes);
            used += here * granule_bytes;
            r.drop_first(here);
        }
        for (; r.granules > 0; r.drop_first(1)) {
            make_room(sizeof(deferred_store) + granule_bytes);
            put_head(deferred_store{r.offset << 16 | r.mask});
            used += put_words(entries + used, r);
        }
    }
    log_new_bytes(entries, used, true);
}

/// So many granules from 'offset' on are about to be stored whole.
template <class Medium>
void redo_protocol<Medium>::note_deferred(std::uint64_t offset, std::uint64_t granules) {
    // In pieces that are listed line by line: other threads see lines. A section with more of them
    // leaves none.
    constexpr std::uint64_t piece = 8 * line_bytes;
    if (granules * granule_bytes > left_stores::lines_max * line_bytes)
        return in_.will_store(base_ + offset, granules * granule_bytes);
    for (std::uint64_t left = granules * granule_bytes, now; left > 0; offset += now, left -= now) {
        now = std::min(left, piece);
        in_.will_store(base_ + offset, now);
    }
}

/// Stores what has waited; the commit flushes it. Bytes that were not stored may be another
/// thread's: they are left alone.
template <class Medium>
void redo_protocol<Medium>::store_deferred(const buffered_run& r) {
    std::byte* const to = base_ + r.offset;
    if (r.mask == whole_granule) {
        note_deferred(r.offset, r.granules);
        const std::byte* const from = r.bytes;
        const std::uint64_t end = r.granules * granule_bytes;
        for (std::uint64_t g = 0; g < end; g += granule_bytes)
            for (std::uint64_t w = g; w < g + granule_bytes; w += word_bytes)
                store_word(to + w, from + w);
        return;
    }
    if (r.mask == 0xff || r.mask == 0xff00) { // which of them nobody can foretell
        const std::uint64_t w = r.mask & 1 ? 0 : word_bytes;
        in_.will_store(to + w, word_bytes);
        return store_word(to + w, r.bytes + w);
    }
    for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes) {
        const unsigned bytes = r.mask >> w & 0xff;
        if (bytes == 0xff) {
            in_.will_store(to + w, word_bytes);
            store_word(to + w, r.bytes + w);
            continue;
        }
        for (std::uint64_t i = 0; i < word_bytes; ++i) {
            if ((bytes >> i & 1) == 0) continue;
            in_.will_store(to + w + i, 1);
            to[w + i] = r.bytes[w + i];
        }
    }
}

template <class Medium>
void redo_protocol<Medium>::store_in_place() {
    write_buffer::runs all(buffer_);
    for (buffered_run r; all.next(r);) store_deferred(r);
}

/// Looks at the words that it is about to store whole (section/kept_pointers.hpp).
template <class Medium> void redo_protocol<Medium>::look_at_pointers() const {
    const kept_pointers kept(in_);
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
        const buffered_line line = buffer_[i];
        for (std::uint64_t at = 0; at < line_bytes; at += word_bytes) {
            const std::uint64_t whole = mask_of(at, word_bytes);
            std::uint64_t word = 0;
            std::memcpy(&word, line.bytes + at, sizeof word);
            if ((line.is->mask & whole) == whole) kept.look_at(line.is->offset + at, word);
        }
    }
    kept.look_through_blocks();
}

template <class Medium> deferred_section::doomed_by redo_protocol<Medium>::commit() {
    settle();
    HF_ASSERT_SLOW(in_.running());
    const bool changes =
        doomed_ == doomed_by::nothing && (!buffer_.empty() || in_.blocks().change_heap());
    if (changes) {
        if (in_.pool().check_pointers) look_at_pointers();
        settle_others();
        log_blocks();
        log_stores();
    }
    if (doomed_ != doomed_by::nothing) return abort(), doomed_; // there may be no room
    ++persist::thread_counters().sections;
    if (changes) make_stores();
    else in_.end_unlogged();
    return doomed_by::nothing;
}

template <> void redo_protocol<ordered_medium>::make_stores() {
    in_.fence(); // before anything is stored in place: upholds deferred_section.hpp (1)
    store_in_place();
    in_.publish_blocks();
    in_.make_stores_durable();
    in_.settle_blocks();
    in_.store_mark();
    in_.end();
}

template <> void redo_protocol<fenced_medium>::make_stores() {
    in_.log().fill_line();
    in_.fence_log(); // before anything is stored in place: upholds deferred_section.hpp (1)
    store_in_place();
    const std::size_t named = in_.dirty().lines().size();
    in_.publish_blocks();
    const bool leaves = in_.may_leave_mark() && in_.dirty().is_short(left_stores::lines_max);
    if (leaves) leave_stores(named);
    else in_.make_stores_durable();
    in_.settle_blocks();
    if (leaves) {
        static_cast<void>(in_.overwritten().sum_up(in_.epoch(), in_.base()));
        in_.marks().leave_out(in_.epoch(), true);
    } else {
        in_.store_mark();
    }
    in_.end();
}

/// Upholds (2).
template <> void redo_protocol<fenced_medium>::leave_stores(std::size_t named) {
    commit_marks& marks = in_.marks();
    marks.leave_none_out();
    in_.leave_stores(named);
    in_.leave_sums();
    marks.note_deferring();
}

void deferred_section::forget() noexcept {
    if (buffer_.size() > store_filter::word_count / 2) filter_.forget_all();
    else
        for (std::size_t i = 0; i < buffer_.size(); ++i)
            filter_.forget_line(base_ + buffer_[i].is->offset);
    buffer_.clear();
    straddling_.to = nullptr;
}

template <class Medium>
void redo_protocol<Medium>::abort() {
    forget();
    in_.blocks().take_back();
    in_.blocks().give_back_staged([&](block b) { in_.prepared().staged().push_back({b}); });
    if (!log_begun_) return in_.end_unlogged();
    // Its log found no room, and stands where the log was that may stand for the section before the
    // last.
    in_.settle_mark();
    in_.settle_blocks();
    // Its records name those blocks: they are handed out again when the mark says that nothing
    // there is pending (commit_marks.hpp, 1).
    in_.store_mark();
    in_.end();
}

template class redo_protocol<ordered_medium>;
template class redo_protocol<fenced_medium>;

} // namespace hf::redo
