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

/// Reads the record at 'at' and moves on; false at the end of the log (2).
bool read_record(lane_position& at, record_view& out) {
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

bool read_begin(lane_position& at, record_view& record, begin_payload& begin) {
    if (!read_record(at, record) || record.kind != record_kind::begin ||
        record.bytes < sizeof begin)
        return false;
    std::memcpy(&begin, record.payload, sizeof begin);
    return begin.args_bytes == record.bytes - sizeof begin;
}

/// Keeps a record; one of kind made as the two that it stands for.
void keep(std::vector<record_view>& records, record_view record, const heap& blocks) {
    if (record.kind == record_kind::made) {
        std::uint64_t bytes = 0;
        if (record.bytes == sizeof(filled_payload))
            std::memcpy(&bytes, record.payload + offsetof(filled_payload, bytes), sizeof bytes);
        records.push_back({record_kind::staged, record.offset, blocks.rounded(bytes), nullptr});
        record.kind = record_kind::filled;
    }
    records.push_back(record);
}

} // namespace

void lane_writer::append(record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                         const void* payload, std::uint64_t payload_bytes) noexcept {
    record_head head;
    head.what = static_cast<std::uint64_t>(kind) << 56 | offset;
    head.bytes = bytes;
    head.check = record_check(head.what, bytes, payload, payload_bytes, at_.chain);
    at_.chain = head.check;

    // Small records are put together first and written as one run of words; nothing is read back.
    alignas(8) std::byte together[256];
    const std::uint64_t total = record_bytes(payload_bytes);
    if (total <= sizeof together) {
        std::memcpy(together, &head, sizeof head);
        if (payload_bytes > 0) {
            std::memset(together + total - word_bytes, 0,
                        word_bytes); // padding never carries old stack bytes
            std::memcpy(together + sizeof head, payload, payload_bytes);
        }
        persist::copy(domain_, at_.next, together, total);
    } else {
        const std::uint64_t whole = round_down(payload_bytes, word_bytes);
        persist::copy(domain_, at_.next, &head, sizeof head);
        persist::copy(domain_, at_.next + sizeof head, payload, whole);
        if (whole < payload_bytes) {
            std::uint64_t last = 0;
            std::memcpy(&last, static_cast<const std::byte*>(payload) + whole,
                        payload_bytes - whole);
            persist::copy(domain_, at_.next + sizeof head + whole, &last, sizeof last);
        }
    }
    at_.next += total;
    persist::counters& c = persist::thread_counters();
    c.log_bytes += total;
    c.pm_bytes += total;
    if (kind != record_kind::begin) ++c.log_entries;
}

bool read_lane(pool_file& file, const heap& blocks, std::uint32_t lane, pending_section& found,
               std::uint64_t& newest_epoch) {
    const lane_header* header = lane_at(file, lane);
    newest_epoch = header->committed;
    lane_position at{};
    for (std::uint64_t half = 0; half < 2; ++half) {
        lane_position first = lane_start(file, lane, half);
        reading_records(first);
        begin_payload begin;
        record_view record;
        if (!read_begin(first, record, begin) || begin.epoch % 2 != half ||
            begin.epoch <= newest_epoch)
            continue;
        newest_epoch = begin.epoch;
        at = first;
        found.lane = lane;
        found.begin = begin;
        found.announced = record.offset;
        found.args.assign(record.payload + sizeof begin, record.payload + record.bytes);
    }
    if (newest_epoch == header->committed) return false;
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
    return true;
}

} // namespace hf
