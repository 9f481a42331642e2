// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <section/lane.hpp>

#include <cstddef>
#include <cstring>

namespace hf {
namespace {

constexpr std::uint64_t offset_mask = (std::uint64_t{1} << 56) - 1;

/// Tells the crash checker that records are read here: nothing of one is believed unless its check
/// holds, and nothing behind one whose check does not.
void reading_records(const lane_position& at) {
    persist::trace(persist::event::checked, at.next, static_cast<std::size_t>(at.limit - at.next));
}

/// Reads the record at 'at' and moves on; false when there is none.
bool read_record_here(lane_position& at, record_view& out) {
    record_head head;
    const auto room = static_cast<std::uint64_t>(at.limit - at.next);
    if (room < sizeof head) return false;
    std::memcpy(&head, at.next, sizeof head);
    const auto kind = static_cast<record_kind>(head.what >> 56);
    const std::uint64_t payload_bytes = has_payload(kind) ? head.bytes : 0;
    // A writer leaves room for a segment record behind every other one (lane_writer::fits); the
    // section that resumes here counts on it.
    const std::uint64_t behind = kind == record_kind::segment ? 0 : sizeof head;
    if (payload_bytes > room || lane_writer::record_bytes(payload_bytes) + behind > room)
        return false;
    const std::byte* payload = at.next + sizeof head;
    if (head.check != record_check(head.what, head.bytes, payload, payload_bytes, at.chain))
        return false;
    out = {kind, head.what & offset_mask, head.bytes, payload};
    at.next += lane_writer::record_bytes(payload_bytes);
    at.chain = head.check;
    return true;
}

/// Reads the next record and moves on; false at the end of the log (2).
bool read_record(lane_position& at, record_view& out) {
    if (read_record_here(at, out)) return true;
    lane_position line{next_line(at.next), at.limit, at.chain};
    if (line.next == at.next || line.next >= at.limit || !read_record_here(line, out)) return false;
    at = line; // (5)
    return true;
}

bool read_begin(lane_position& at, record_view& record, begin_payload& begin) {
    if (!read_record(at, record) || record.kind != record_kind::begin ||
        record.bytes < sizeof begin)
        return false;
    std::memcpy(&begin, record.payload, sizeof begin);
    return begin.args_bytes == record.bytes - sizeof begin;
}

/// Keeps a record; one of kind made as the two that it stands for.
void keep(std::deque<record_view>& records, record_view record, const heap& blocks) {
    if (record.kind == record_kind::made) {
        std::uint64_t bytes = 0;
        if (record.bytes == sizeof(filled_payload))
            std::memcpy(&bytes, record.payload + offsetof(filled_payload, bytes), sizeof bytes);
        records.push_back({record_kind::staged, record.offset, blocks.rounded(bytes), nullptr});
        record.kind = record_kind::filled;
    }
    records.push_back(record);
}

/// All that follows the begin record.
void read_records(pool_file& file, const heap& blocks, lane_position at, pending_section& found) {
    found.records.clear();
    record_view record;
    std::uint64_t segments_bytes = 0;
    while (read_record(at, record)) {
        keep(found.records, record, blocks);
        if (record.kind != record_kind::segment) continue;
        // Checks that hold are no proof of an honest writer: segments may lead anywhere, and round
        // in circles.
        segments_bytes += record.bytes;
        found.sound = blocks.well_formed({record.offset, record.bytes}) &&
                      record.bytes >= segment_bytes_min(file) &&
                      segments_bytes <= file.size_bytes();
        if (!found.sound) break;
        at.next = file.base() + record.offset;
        at.limit = at.next + record.bytes;
        reading_records(at);
    }
    found.end = at;
}

/// What stands where the next record would: its check, or the end mark. 0 where neither can be.
std::uint64_t word_at(const lane_position& at) noexcept {
    std::uint64_t word = 0;
    if (at.limit - at.next >= static_cast<std::ptrdiff_t>(sizeof word))
        std::memcpy(&word, at.next, sizeof word);
    return word;
}

} // namespace

void lane_writer::put(std::byte* to, const void* from, std::uint64_t bytes) noexcept {
    if (kept_from_ == nullptr) return persist::copy(domain_, to, from, bytes);
    persist::trace(persist::event::store, to, bytes);
    std::memcpy(to, from, bytes);
    std::atomic_signal_fence(std::memory_order_seq_cst); // before the store that it is kept for
}

/// A record that must be durable follows: those before it must be when it is (2).
void lane_writer::end_kept(std::uint64_t record_bytes) noexcept {
    persist::flush(domain_, kept_from_, static_cast<std::size_t>(at_.next - kept_from_));
    kept_from_ = nullptr;
    // No store past the caches to a line that is in them. A segment record takes the room there is.
    std::byte* const line = next_line(at_.next);
    if (line + record_bytes + sizeof(record_head) <= at_.limit) at_.next = line;
}

/// As append_before does, for what most stores overwrite.
void lane_writer::keep_word(std::uint64_t offset, const void* old) noexcept {
    constexpr std::uint64_t total = sizeof(record_head) + word_bytes;
    std::uint64_t words[total / word_bytes] = {
        0, static_cast<std::uint64_t>(record_kind::overwritten) << 56 | offset, word_bytes, 0};
    std::memcpy(&words[3], old, word_bytes);
    words[0] = record_check(words[1], word_bytes, &words[3], word_bytes, at_.chain);
    at_.chain = words[0];
    if (domain_ == domain::process) { // upholds (4)
        store_in_order(at_.next + total, ~words[0]);
        std::memcpy(at_.next + word_bytes, &words[1], total - word_bytes);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        store_in_order(at_.next, words[0]);
    } else {
        put(at_.next, words, total);
    }
    at_.next += total;
    persist::counters& c = persist::thread_counters();
    ++c.kept_entries;
    c.kept_bytes += total;
}

void lane_writer::append_before(std::byte* next, record_kind kind, std::uint64_t offset,
                                std::uint64_t bytes, const void* payload,
                                std::uint64_t payload_bytes) noexcept {
    const std::uint64_t total = record_bytes(payload_bytes);
    if (kept_from_ != nullptr && kind != record_kind::overwritten) [[unlikely]]
        end_kept(total);
    record_head head;
    head.what = static_cast<std::uint64_t>(kind) << 56 | offset;
    head.bytes = bytes;
    head.check = record_check(head.what, bytes, payload, payload_bytes, at_.chain);
    at_.chain = head.check;
    const bool in_order = domain_ == domain::process;
    if (in_order) store_in_order(next, ~head.check); // upholds (4)
    const std::uint64_t later = in_order ? sizeof head.check : 0;

    // Small records are put together first and written as one run of words; nothing is read back.
    alignas(8) std::byte together[256];
    if (total <= sizeof together) {
        std::memcpy(together, &head, sizeof head);
        if (payload_bytes > 0) {
            std::memset(together + total - word_bytes, 0,
                        word_bytes); // padding never carries old stack bytes
            std::memcpy(together + sizeof head, payload, payload_bytes);
        }
        put(at_.next + later, together + later, total - later);
    } else {
        const std::uint64_t whole = round_down(payload_bytes, word_bytes);
        put(at_.next + later, reinterpret_cast<std::byte*>(&head) + later, sizeof head - later);
        put(at_.next + sizeof head, payload, whole);
        if (whole < payload_bytes) {
            std::uint64_t last = 0;
            std::memcpy(&last, static_cast<const std::byte*>(payload) + whole,
                        payload_bytes - whole);
            put(at_.next + sizeof head + whole, &last, sizeof last);
        }
    }
    if (in_order) store_in_order(at_.next, head.check);
    at_.next += total;
    persist::counters& c = persist::thread_counters();
    if (for_roll_back(kind)) {
        ++c.kept_entries;
        c.kept_bytes += total;
        return;
    }
    c.log_bytes += total;
    c.pm_bytes += total;
    if (kind != record_kind::begin) ++c.log_entries;
}

void start_lane(pool_file& file, std::uint32_t lane, std::uint64_t epoch) noexcept {
    lane_header* const header = lane_at(file, lane);
    const domain d = file.domain();
    const bool in_order = d == domain::process;
    if (header->committed == epoch && is_ordered(*header) == in_order) return;
    if (is_ordered(*header)) persist::store_word(d, &header->witness, lane_unordered);
    for (std::uint64_t half = 0; half < 2 && in_order; ++half) {
        const lane_position at = lane_start(file, lane, half);
        lane_writer::store_in_order(at.next, ~at.chain);
    }
    persist::store_word(d, &header->committed, epoch);
    if (in_order) persist::store_word(d, &header->witness, witness_of(epoch)); // from here on (4)
    persist::fence(d);
}

bool read_lane(pool_file& file, const heap& blocks, std::uint32_t lane, pending_section& found,
               std::uint64_t& newest_epoch, lane_damage& damage) {
    const lane_header* header = lane_at(file, lane);
    newest_epoch = header->committed;
    const bool in_order = is_ordered(*header);
    const auto offset_of = [&](const void* at) {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - file.base());
    };
    if (in_order && header->witness != witness_of(header->committed) &&
        header->witness != witness_of(header->committed + 1))
        damage = {"mark", offset_of(header), witness_of(header->committed), header->witness};
    lane_damage lost; // a begin record that is none
    lane_position at{};
    for (std::uint64_t half = 0; half < 2; ++half) {
        lane_position first = lane_start(file, lane, half);
        reading_records(first);
        begin_payload begin;
        record_view record;
        if (!read_begin(first, record, begin) || begin.epoch % 2 != half) {
            const lane_position start = lane_start(file, lane, half);
            if (word_at(start) != ~start.chain)
                lost = {"begin record", offset_of(start.next), ~start.chain, word_at(start)};
            continue;
        }
        if (begin.epoch <= newest_epoch) continue;
        if ((record.offset & in_order_bit) != 0 && header->witness == 0)
            damage = {"mark", offset_of(header), witness_of(begin.epoch - 1), 0};
        newest_epoch = begin.epoch;
        at = first;
        found.lane = lane;
        found.begin = begin;
        found.announced = record.offset & (in_order_bit - 1);
        found.args.assign(record.payload + sizeof begin, record.payload + record.bytes);
    }
    if (newest_epoch == header->committed) {
        if (in_order && lost.what != nullptr) damage = lost;
        return false;
    }
    read_records(file, blocks, at, found);
    if (in_order && found.sound && word_at(found.end) != ~found.end.chain)
        damage = {"record", offset_of(found.end.next), ~found.end.chain, word_at(found.end)};
    return true;
}

} // namespace hf
