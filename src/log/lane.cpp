// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/engines.hpp>
#include <base/words.hpp>
#include <log/word_log.hpp>
#include <pool/believed.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace hf {
namespace {

constexpr std::uint64_t offset_mask = (std::uint64_t{1} << 56) - 1;

/// Tells the crash checker that records are read here, whole lines of them: nothing of one is
/// believed unless its check holds, and nothing behind one whose check does not.
void reading(const std::byte* from, std::uint64_t bytes, const std::byte* limit,
             bool first = false) {
    const std::uintptr_t end = round_up(reinterpret_cast<std::uintptr_t>(from) + bytes, line_bytes);
    const auto until = std::min(end, reinterpret_cast<std::uintptr_t>(limit));
    trace::announce(first ? believed::checked : believed::checked_on, from,
                    until - reinterpret_cast<std::uintptr_t>(from));
}
/// The same downwards from 'end'. What fails there is no end to the other records.
void reading_below(const std::byte* end, std::uint64_t bytes, const std::byte* limit) {
    const auto last = reinterpret_cast<std::uintptr_t>(end);
    const std::uintptr_t first = round_down(last - bytes, line_bytes);
    const auto from = std::max(first, reinterpret_cast<std::uintptr_t>(limit));
    trace::announce(believed::checked, reinterpret_cast<const void*>(from), last - from);
}

/// Reads the next record and moves on; false at the end of the log (2).
bool read_record(lane_position& at, record_view& out) {
    record_head head;
    const auto room = static_cast<std::uint64_t>(at.limit - at.next);
    if (room < sizeof head) return false;
    reading(at.next, sizeof head, at.limit, at.records == 0);
    std::memcpy(&head, at.next, sizeof head);
    const auto kind = static_cast<record_kind>(head.what >> 56);
    const std::uint64_t payload_bytes = has_payload(kind) ? head.bytes : 0;
    // A writer leaves room for a segment record behind every other one (lane_writer::fits); the
    // section that resumes here counts on it.
    const std::uint64_t behind = kind == record_kind::segment ? 0 : sizeof head;
    if (payload_bytes > room || lane_writer::record_bytes(payload_bytes) + behind > room)
        return false;
    const std::byte* payload = at.next + sizeof head;
    if (payload_bytes > 0) reading(payload, payload_bytes, at.limit);
    if (head.check != record_check(head.what, head.bytes, payload, payload_bytes, at.chain))
        return false;
    out = {kind, head.what & offset_mask, head.bytes, payload};
    at.next += lane_writer::record_bytes(payload_bytes);
    HF_ASSERT_SLOW(at.next <= at.limit); // or its length was believed before it was bounded
    at.chain = head.check;
    ++at.records;
    return true;
}

/// Reads the next kept record and moves on; false when the next one, if any, was kept behind
/// further records than those read so far (5).
bool read_kept(lane_position& at, record_view& out) {
    kept_head head;
    if (at.kept - at.next < static_cast<std::ptrdiff_t>(sizeof head)) return false;
    const auto room = static_cast<std::uint64_t>(at.kept - at.next);
    reading_below(at.kept, sizeof head, at.next);
    std::memcpy(&head, at.kept - sizeof head, sizeof head);
    const std::uint64_t bytes = head.bytes & ((std::uint64_t{1} << kept_bytes_bits) - 1);
    if (head.bytes != kept_bytes_word(at, bytes) || !is_of(record_kind::overwritten, head.what) ||
        bytes == 0 || bytes > room || lane_writer::record_bytes(bytes) > room)
        return false;
    const std::byte* payload = at.kept - lane_writer::record_bytes(bytes);
    reading_below(at.kept, lane_writer::record_bytes(bytes), at.next);
    if (head.check != kept_check(at, head.what, head.bytes, payload, bytes)) return false;
    out = {record_kind::overwritten, head.what & offset_mask, bytes, payload};
    at.kept -= lane_writer::record_bytes(bytes);
    HF_ASSERT_SLOW(at.kept >= at.next);
    at.kept_chain = head.check;
    return true;
}

bool read_begin(lane_position& at, record_view& record, begin_payload& begin) {
    if (!read_record(at, record) || record.kind != record_kind::begin ||
        record.bytes < sizeof begin)
        return false;
    std::memcpy(&begin, record.payload, sizeof begin);
    return begin.args_bytes == record.bytes - sizeof begin;
}

/// Keeps a record; one of kind made or own as the two that it stands for.
void keep(std::deque<record_view>& records, record_view record, const heap& blocks) {
    if (record.kind == record_kind::made || record.kind == record_kind::own) {
        const auto taken =
            record.kind == record_kind::own ? record_kind::alloc : record_kind::staged;
        std::uint64_t bytes = 0;
        if (record.bytes == sizeof(filled_payload))
            std::memcpy(&bytes, record.payload + offsetof(filled_payload, bytes), sizeof bytes);
        records.push_back({taken, record.offset, blocks.rounded(bytes), nullptr});
        record.kind = record_kind::filled;
    }
    records.push_back(record);
}

/// All that follows the begin record.
void read_records(pool_file& file, const heap& blocks, lane_position at, bool with_kept,
                  pending_section& found) {
    found.records.clear();
    found.kept_known = with_kept;
    record_view record;
    std::uint64_t segments_bytes = 0;
    for (;;) {
        while (with_kept && read_kept(at, record)) found.records.push_back(record);
        if (!read_record(at, record)) break;
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
        at.limit = at.kept = at.next + record.bytes;
    }
    found.end = at;
}

/// The log of the section before, where it may have to stand for that section's stores: of an
/// engine that defers them, and whole. Written over in part its lane's next log was durable. Or
/// where it may have left them to the section that was found, which says so, and in which check its
/// log ends: written over in part that one's fence was passed (7).
void read_earlier(pool_file& file, const heap& blocks, const lane_position& at,
                  const begin_payload& begin, const lane_header& header, pending_section& found) {
    const engine_row* const row = engine_of(begin.engine);
    if (row == nullptr || begin.engine != found.begin.engine ||
        begin.epoch + 1 != found.begin.epoch || begin.epoch <= header.committed)
        return;
    const bool deferred = row->sections == engine_sections::buffered;
    left_payload left{};
    if (!deferred && (row->sections != engine_sections::writes || found.args.size() != sizeof left))
        return;
    auto earlier = std::make_unique<pending_section>();
    earlier->lane = found.lane;
    earlier->begin = begin;
    earlier->announced = 0;
    read_records(file, blocks, at, false, *earlier);
    if (!deferred) std::memcpy(&left, found.args.data(), sizeof left);
    const bool whole = deferred ? earlier->has_all_new_bytes() : earlier->end.chain == left.chain;
    if (earlier->sound && whole) found.earlier = std::move(earlier);
}

/// What stands where the next record would: its check, or the end mark. 0 where neither can be.
std::uint64_t word_at(const lane_position& at) noexcept {
    std::uint64_t word = 0;
    if (at.limit - at.next >= static_cast<std::ptrdiff_t>(sizeof word))
        std::memcpy(&word, at.next, sizeof word);
    return word;
}
/// The same for the next kept record.
std::uint64_t kept_word_at(const lane_position& at) noexcept {
    std::uint64_t word = 0;
    if (at.kept - at.next >= static_cast<std::ptrdiff_t>(sizeof word))
        std::memcpy(&word, at.kept - sizeof word, sizeof word);
    return word;
}

/// Copies a payload; its last word is filled up with zeros.
void copy_payload(std::uint64_t* to, const void* from, std::uint64_t bytes) noexcept {
    const std::uint64_t whole = round_down(bytes, word_bytes);
    copy_words(to, from, whole);
    if (whole == bytes) return;
    std::uint64_t last = 0;
    std::memcpy(&last, static_cast<const std::byte*>(from) + whole, bytes - whole);
    to[whole / word_bytes] = last;
}

} // namespace

template <class Medium>
void lane_writer_in<Medium>::keep(std::uint64_t offset, std::uint64_t bytes,
                                  const void* old) noexcept {
    HF_ASSERT_SLOW(bytes > 0);
    HF_ASSERT_SLOW(fits_kept(bytes));
    HF_ASSERT_SLOW(offset >> 56 == 0);
    const std::uint64_t total = record_bytes(bytes);
    const std::uint64_t what = static_cast<std::uint64_t>(record_kind::overwritten) << 56 | offset;
    const std::uint64_t bytes_word = kept_bytes_word(at_, bytes);
    std::byte* const end = at_.kept;
    std::byte* const payload = end - total;
    trace::announce(trace::store, payload, total);
    // The check is of the copy: another thread may change what is at 'old'.
    std::uint64_t check = 0;
    if (bytes == word_bytes) { // as words: a wider load of words just stored waits for the stores
        std::uint64_t word = 0;
        std::memcpy(&word, old, sizeof word);
        store_in_order(payload, word);
        check = kept_check(at_, what, bytes_word, &word, bytes);
    } else {
        std::memset(end - sizeof(kept_head) - word_bytes, 0, word_bytes); // the padding
        std::memcpy(payload, old, bytes);
        check = kept_check(at_, what, bytes_word, payload, bytes);
    }
    at_.kept = payload;
    at_.limit = limit_below(at_.kept);
    at_.kept_chain = check;
    end_kept(); // upholds (4)
    store_in_order(end - sizeof(kept_head), bytes_word);
    store_in_order(end - 2 * word_bytes, what);
    store_in_order(end - word_bytes, check);
    persist::counters& c = persist::thread_counters();
    ++c.kept_entries;
    c.kept_bytes += total;
    HF_ASSERT_SLOW(valid());
}

template <class Medium>
void lane_writer_in<Medium>::continue_in(std::byte* begin, std::uint64_t offset,
                                         std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes % line_bytes == 0);
    HF_ASSERT_SLOW(bytes > sizeof(record_head) + 2 * line_bytes);
    at_.kept = begin + bytes;
    end_kept(); // upholds (4)
    append_before(begin, record_kind::segment, offset, bytes, nullptr, 0);
    at_.next = begin;
    at_.limit = limit_below(at_.kept);
    HF_ASSERT_SLOW(valid());
    HF_ASSERT_SLOW(fits(0));
}

template <class Medium>
void lane_writer_in<Medium>::append_before(std::byte* next, record_kind kind, std::uint64_t offset,
                                           std::uint64_t bytes, const void* payload,
                                           std::uint64_t payload_bytes) noexcept {
    const std::uint64_t total = record_bytes(payload_bytes);
    HF_ASSERT_SLOW(at_.next + total <= at_.limit);
    HF_ASSERT_SLOW(offset >> 56 == 0);
    HF_ASSERT_SLOW(payload_bytes == (has_payload(kind) ? bytes : 0));
    HF_ASSERT_SLOW(payload != nullptr || payload_bytes == 0);
    record_head head;
    head.what = static_cast<std::uint64_t>(kind) << 56 | offset;
    head.bytes = bytes;
    head.check = record_check(head.what, bytes, payload, payload_bytes, at_.chain);
    at_.chain = head.check;
    end_records(next, head.check); // upholds (4)
    constexpr std::uint64_t later = Medium::keeps_order() ? sizeof head.check : 0;

    // Small records are put together first and written as one run of words; nothing is read back.
    std::uint64_t together[32];
    if (total <= sizeof together) {
        together[0] = head.check;
        together[1] = as_word(head.what);
        together[2] = as_word(head.bytes);
        copy_payload(together + 3, payload, payload_bytes);
        medium_.copy(at_.next + later, reinterpret_cast<std::byte*>(together) + later,
                     total - later);
    } else {
        const std::uint64_t whole = round_down(payload_bytes, word_bytes);
        medium_.copy(at_.next + later, reinterpret_cast<std::byte*>(&head) + later,
                     sizeof head - later);
        medium_.copy(at_.next + sizeof head, payload, whole);
        if (whole < payload_bytes) {
            std::uint64_t last = 0;
            std::memcpy(&last, static_cast<const std::byte*>(payload) + whole,
                        payload_bytes - whole);
            medium_.copy(at_.next + sizeof head + whole, &last, sizeof last);
        }
    }
    store_check(at_.next, head.check); // upholds (4)
    at_.next += total;
    ++at_.records;
    HF_ASSERT_SLOW(kind == record_kind::segment || (valid() && at_.next == next));
    persist::counters& c = persist::thread_counters();
    if (kind == record_kind::unkept) {
        ++c.kept_entries;
        c.kept_bytes += total;
        return;
    }
    c.log_bytes += total;
    c.pm_bytes += total;
    if (kind != record_kind::begin) ++c.log_entries;
}

template class lane_writer_in<ordered_medium>;
template class lane_writer_in<fenced_medium>;

void erase_lane(pool_file& file, std::uint32_t lane) noexcept {
    lane_header* const header = lane_at(file, lane);
    const hf::medium pm = file.medium();
    for (std::uint64_t half = 0; half < 2; ++half) { // before the mark that they are above
        const lane_position at = lane_start(file, lane, half);
        pm.store_word(reinterpret_cast<std::uint64_t*>(at.next), ~at.chain);
    }
    end_word_log(pm, header);
    pm.fence();
    pm.store_word(&header->witness, lane_unordered);
    pm.store_word(&header->committed, 0);
    pm.fence();
}

void start_lane(pool_file& file, std::uint32_t lane, std::uint64_t epoch) noexcept {
    lane_header* const header = lane_at(file, lane);
    HF_ASSERT_SLOW(header->committed <= epoch); // or sections that are done would be pending again
    const hf::medium pm = file.medium();
    const bool in_order = pm.keeps_order();
    end_word_log(pm, header);
    if (header->committed == epoch && is_ordered(*header) == in_order) return;
    if (is_ordered(*header)) pm.store_word(&header->witness, lane_unordered);
    for (std::uint64_t half = 0; half < 2 && in_order; ++half) {
        const lane_position at = lane_start(file, lane, half);
        lane_writer::store_in_order(at.next, ~at.chain);
    }
    pm.store_word(&header->committed, epoch);
    if (in_order) pm.store_word(&header->witness, witness_of(epoch)); // from here on (4)
    pm.fence();
    HF_ASSERT_SLOW(is_ordered(*header) == in_order);
    HF_ASSERT_SLOW(header->committed == epoch);
}

bool read_lane(pool_file& file, const heap& blocks, std::uint32_t lane, pending_section& found,
               std::uint64_t& newest_epoch, lane_damage& damage, bool with_kept) {
    const lane_header* header = lane_at(file, lane);
    newest_epoch = header->committed;
    bool in_order = is_ordered(*header);
    const auto offset_of = [&](const void* at) {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - file.base());
    };
    lane_damage lost; // a begin record that cannot be read
    lane_position at{};
    std::uint64_t last = 0; // epoch of the newest begin record, pending or not
    lane_position firsts[2]{};
    begin_payload begins[2]{};
    for (std::uint64_t half = 0; half < 2; ++half) {
        lane_position& first = firsts[half] = lane_start(file, lane, half);
        begin_payload& begin = begins[half];
        record_view record;
        if (!read_begin(first, record, begin) || begin.epoch % 2 != half) {
            const lane_position start = lane_start(file, lane, half);
            if (word_at(start) != ~start.chain)
                lost = {"begin record", offset_of(start.next), ~start.chain, word_at(start)};
            begin = {};
            continue;
        }
        // A build that knows no order has used the lane since.
        if (begin.epoch > last)
            in_order = is_ordered(*header) && (record.offset & in_order_bit) != 0;
        last = std::max(last, begin.epoch);
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
    if (in_order && header->witness != witness_of(header->committed) &&
        header->witness != witness_of(header->committed + 1))
        damage = {"mark", offset_of(header), witness_of(header->committed), header->witness};
    if (header->logged != 0) {
        const bool both = newest_epoch != header->committed;
        newest_epoch = std::max(newest_epoch, header->committed + 1);
        read_word_log(file, blocks, lane, found, damage);
        if (both) damage = {"end of a log of words", offset_of(&header->logged), 0, header->logged};
        return true;
    }
    if (newest_epoch == header->committed) {
        if (in_order && lost.what != nullptr) damage = lost;
        return false;
    }
    HF_ASSERT_SLOW(found.begin.epoch == newest_epoch);
    HF_ASSERT_SLOW(newest_epoch > header->committed);
    HF_ASSERT_SLOW(found.args.size() == found.begin.args_bytes);
    read_records(file, blocks, at, with_kept, found);
    const std::uint64_t other = (newest_epoch + 1) % 2;
    read_earlier(file, blocks, firsts[other], begins[other], *header, found);
    if (!in_order || !found.sound) return true;
    const lane_position& end = found.end;
    HF_ASSERT_SLOW(end.next <= end.limit);
    if (word_at(end) != ~end.chain)
        damage = {"record", offset_of(end.next), ~end.chain, word_at(end)};
    else if (with_kept && kept_word_at(end) != ~end.kept_chain)
        damage = {"kept record", offset_of(end.kept) - word_bytes, ~end.kept_chain,
                  kept_word_at(end)};
    return true;
}

} // namespace hf
