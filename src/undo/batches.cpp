// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <undo/batches.hpp>

#include <algorithm>
#include <utility>

namespace hf::undo {

namespace {

/// An entry has at most so many: a longer store has several entries, so that each finds room.
constexpr std::uint64_t old_bytes_max = 1024;
constexpr std::uint64_t page_bytes = 4096; // no chunk is shorter

std::uint64_t lines_in(std::uint64_t bytes) noexcept { return bytes / line_bytes + 2; }

} // namespace

using in_batches = undo_protocol<batched_medium>;

void in_batches::begin(const hf_txfunc& function, const void* /*args*/) {
    in_.check_place(function);
    in_.settle_mark(); // no begin record will stand for it
    in_.begin(*this, function);
    covered_ = false;
    log_.start(*in_.pool().file, in_.marks().lane(), row.bit, function.id);
    // Less the header, what stands before the lane's room, and a line that the end shares.
    log_.limit_room((lines_.cover_lines() - 3) * line_bytes);
    ++serial_;
    lines_.begin_section(runner_);
}

void in_batches::log(const void* address, std::uint64_t bytes) {
    HF_ASSERT_SLOW(in_.running());
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset == section::outside || bytes == 0) return;
    if (in_.fresh(offset)) in_.know_fresh(in_.blocks().taken().around(offset));
    else log_old_bytes(offset, address, bytes);
    in_.store_to_own(address, bytes); // its lines are known by its log
}

void in_batches::log_ahead(const void* address, std::uint64_t bytes) {
    const auto offset =
        static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - in_.base());
    // What is wrong with the address, the store itself will say.
    if (in_.pool().contains(address) && bytes != 0 && !in_.fresh(offset))
        log_old_bytes(offset, address, bytes);
}

void in_batches::note(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset != section::outside && bytes != 0) in_.will_store(address, bytes);
}

void in_batches::log_old_bytes(std::uint64_t offset, const void* address, std::uint64_t bytes) {
    if (logged_.seen_or_add(serial_, offset, bytes)) return;
    in_.check_end(offset, bytes);
    const auto* from = static_cast<const std::byte*>(address);
    while (bytes > 0) {
        const std::uint64_t here = std::min(bytes, old_bytes_max);
        add_entry(word_log::entry_bytes(here), [&] { log_.add_old_bytes(offset, from, here); });
        offset += here;
        from += here;
        bytes -= here;
    }
}

/// Calls 'write', which adds an entry of so many bytes.
template <class Write> void in_batches::add_entry(std::uint64_t entry_bytes, Write&& write) {
    if (!covered_ && log_.fits(entry_bytes)) [[likely]]
        return write();
    if (!covered_) cover();
    log_.show();
    const bool fits = log_.fits(entry_bytes);
    log_.hide();
    if (!fits) {
        const block b = in_.reserve_segment(entry_bytes + 2 * word_entry_bytes);
        if (b.offset == 0) no_room_for_log();
        change_log(word_entry_bytes, [&] { log_.continue_in(b); });
    }
    change_log(entry_bytes, write);
}

/// Appends what 'write' adds to a log that is on the disk, so many bytes.
template <class Write> void in_batches::change_log(std::uint64_t bytes, Write&& write) {
    lines_.hold(lines_in(bytes) + 1); // upholds (4)
    log_.show();
    const char* const from = log_.next();
    write();
    lines_.add(from, bytes);
    lines_.add(log_.header(), sizeof(lane_header));
    log_.hide();
    lines_.let_go();
}

/// What it has stored so far may be taken from here on.
void in_batches::cover() {
    HF_ASSERT_SLOW(!covered_);
    lines_.hold_cover();
    // With what stands before the room: no begin record (lane.hpp, 3).
    const char* const first = log_.first() - line_bytes;
    lines_.add(first, static_cast<std::size_t>(log_.next() - first));
    lines_.add(log_.header(), sizeof(lane_header));
    log_.widen();
    log_.hide();
    covered_ = true;
    lines_.let_go(runner_);
}

void* in_batches::alloc(std::uint64_t bytes) {
    const block b = in_.reserve(bytes);
    if (b.offset == 0) return nullptr;
    in_.know_fresh(b);
    return in_.take(b);
}

void in_batches::log_blocks() {
    const auto log_each = [&](const auto& blocks, record_kind kind) {
        for (block b : blocks) add_entry(word_entry_bytes, [&] { log_.add_block(kind, b); });
    };
    log_each(in_.blocks().taken(), record_kind::alloc);
    log_each(in_.blocks().adopted(), record_kind::staged);
    log_each(in_.blocks().freed(), record_kind::free);
}

/// Calls 'visit(address, bytes)' for all that it has stored to, without the allocator's words.
template <class Visit> void in_batches::for_each_stored(Visit&& visit) {
    std::byte* const base = in_.base();
    log_.for_each_stored(
        [&](std::uint64_t offset, std::uint64_t bytes) { visit(base + offset, bytes); });
    for (block b : in_.blocks().taken()) visit(base + b.offset, b.bytes);
}

/// So many has it stored to, with the allocator's words.
std::uint64_t in_batches::lines_at_most() const {
    const section_blocks& blocks = in_.blocks();
    const auto logged = static_cast<std::uint64_t>(log_.next() - log_.first()) / word_entry_bytes;
    std::uint64_t lines = 2 * logged + in_.dirty().lines_at_most();
    // A block has its bit's word, and the entries of its chunks.
    const auto tables = [](block b) { return 4 + b.bytes / page_bytes; };
    for (block b : blocks.taken()) lines += lines_in(b.bytes) + tables(b);
    for (block b : blocks.freed()) lines += tables(b);
    for (block b : blocks.adopted()) lines += tables(b);
    return lines;
}

void in_batches::commit() {
    HF_ASSERT_SLOW(in_.running());
    ++persist::thread_counters().sections;
    if (std::exchange(doomed_, false)) return take_back();
    if (!covered_ && log_.is_empty() && !in_.stored() && !in_.blocks().change_heap()) {
        log_.end();
        const bool noted = lines_.end_section(runner_);
        end();
        if (noted) persist::ended(lines_, 0);
        return;
    }
    if (in_.pool().check_pointers) {
        if (covered_) log_.show();
        look_at_pointers(in_, log_);
        if (covered_) log_.hide();
    }
    if (covered_ || !lines_.hold_section(runner_, lines_at_most())) return end_covered();
    const std::uint64_t lines = append_and_end();
    end();
    persist::ended(lines_, lines);
}

/// How many lines it has appended. Requires: the lines are held.
std::uint64_t in_batches::append_and_end() {
    in_.publish_blocks(); // upholds (3)
    std::uint64_t lines = 0;
    const auto add = [&](const void* address, std::uint64_t bytes) {
        lines += (bytes + line_bytes - 1) / line_bytes;
        lines_.add(address, bytes);
    };
    for_each_stored(add);
    in_.dirty().for_each(add);
    in_.dirty().forget();
    log_.end();
    lines_.let_go(runner_);
    line_log::leave(runner_);
    return lines;
}

/// Upholds (4).
void in_batches::end_covered() {
    if (!covered_) cover();
    const hf::medium pm = in_.medium();
    log_blocks();
    in_.publish_blocks_apart(); // upholds (4)
    log_.show();
    for_each_stored([&](const void* address, std::uint64_t bytes) { pm.flush(address, bytes); });
    log_.hide();
    in_.dirty().flush_all(pm);
    pm.order();
    lines_.hold(1);
    log_.show();
    log_.end();
    lines_.add(log_.header(), sizeof(lane_header));
    lines_.let_go();
    line_log::leave(runner_);
    end();
    persist::ended(lines_, 1);
}

void in_batches::take_back() {
    if (covered_) log_.show();
    put_back(in_, log_);
    in_.dirty().forget();
    if (covered_) {
        lines_.hold(1);
        log_.end();
        lines_.add(log_.header(), sizeof(lane_header));
        lines_.let_go();
        line_log::leave(runner_);
        return end();
    }
    log_.end();
    const bool noted = lines_.end_section(runner_);
    end();
    if (noted) persist::ended(lines_, 0);
}

bool in_batches::end_early() {
    doomed_ = true;
    without_exceptions("the end of a thread", [this] { commit(); });
    leave_section();
    return true;
}

void in_batches::end() {
    in_.settle_blocks();
    in_.marks().release_freed();
    in_.end_unlogged();
}

} // namespace hf::undo
