// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lanes as docs/format/log.md describes them. Written apart from log/lane.cpp, which reads a
// mapped pool: this one reads bytes, and the two agree or a test fails.
#include <base/engines.hpp>
#include <base/line.hpp>
#include <verify/image.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace hf::verify {
namespace {

constexpr std::uint64_t offset_mask = (std::uint64_t{1} << 56) - 1;

/// The place of the next record, and the check that it continues.
struct cursor {
    std::uint64_t next, limit; // from pool start
    std::uint64_t chain;
    std::uint64_t kept; // the end of the next kept record, and what it continues
    std::uint64_t kept_chain = 0, records = 0;
};

bool read_record(const pool_image& pool, cursor& at, lane_record& out) noexcept {
    record_head head;
    if (at.limit - at.next < sizeof head || !pool.has(at.next, at.limit - at.next)) return false;
    std::memcpy(&head, pool.file().data() + at.next, sizeof head);
    const std::uint64_t room = at.limit - at.next - sizeof head;
    const auto kind = static_cast<record_kind>(head.what >> 56);
    const std::uint64_t bytes = has_payload(kind) ? head.bytes : 0;
    if (bytes > room || round_up(bytes, word_bytes) > room) return false;
    const auto payload = pool.file().subspan(at.next + sizeof head, bytes);
    if (head.check != record_check(head.what, head.bytes, payload.data(), bytes, at.chain))
        return false;
    out = {kind, at.next, head.what & offset_mask, head.bytes, payload};
    at.next += sizeof head + round_up(bytes, word_bytes);
    at.chain = head.check;
    ++at.records;
    return true;
}

/// The next kept record, if it was kept behind just the records read so far.
bool read_kept(const pool_image& pool, cursor& at, lane_record& out) noexcept {
    kept_head head;
    if (at.kept < at.next || at.kept - at.next < sizeof head ||
        !pool.has(at.next, at.kept - at.next))
        return false;
    const std::uint64_t room = at.kept - at.next - sizeof head;
    std::memcpy(&head, pool.file().data() + at.kept - sizeof head, sizeof head);
    const std::uint64_t bytes = head.bytes << 16 >> 16;
    if (head.bytes >> 48 != at.records % 65536 || bytes == 0 || bytes > room ||
        round_up(bytes, word_bytes) > room ||
        head.what >> 56 != static_cast<std::uint64_t>(record_kind::overwritten))
        return false;
    const std::uint64_t start = at.kept - sizeof head - round_up(bytes, word_bytes);
    const auto payload = pool.file().subspan(start, bytes);
    std::uint64_t word = 0; // eight bytes are their own sum
    if (bytes == sizeof word) std::memcpy(&word, payload.data(), sizeof word);
    else word = XXH3_64bits(payload.data(), bytes);
    const std::uint64_t words[3] = {head.what, head.bytes, word};
    if (head.check != checksum(words, sizeof words, at.chain ^ at.kept_chain)) return false;
    out = {record_kind::overwritten, start, head.what & offset_mask, bytes, payload};
    at.kept = start;
    at.kept_chain = head.check;
    return true;
}

bool read_begin(const pool_image& pool, cursor& at, lane_record& record,
                begin_payload& begin) noexcept {
    if (!read_record(pool, at, record) || record.kind != record_kind::begin ||
        record.bytes < sizeof begin)
        return false;
    std::memcpy(&begin, record.payload.data(), sizeof begin);
    return begin.args_bytes == record.bytes - sizeof begin;
}

/// A record of kind 'made' counts as two.
void keep(std::vector<lane_record>& records, lane_record record, const pool_image& pool) {
    if (record.kind == record_kind::made || record.kind == record_kind::own) {
        filled_payload filled{};
        if (record.payload.size() == sizeof filled)
            std::memcpy(&filled, record.payload.data(), sizeof filled);
        records.push_back(
            {record.kind == record_kind::made ? record_kind::staged : record_kind::alloc,
             record.at,
             record.offset,
             pool.rounded(filled.bytes),
             {}});
        record.kind = record_kind::filled;
    }
    records.push_back(record);
}

/// True when it ends as a log may end.
bool read_records(const pool_image& pool, cursor& at, bool with_kept, std::uint64_t& budget_bytes,
                  std::vector<lane_record>& records) {
    lane_record record;
    for (;;) {
        const bool kept = with_kept && read_kept(pool, at, record);
        if (!kept && !read_record(pool, at, record)) return true;
        const std::uint64_t taken = sizeof(record_head) + record.payload.size();
        if (taken > budget_bytes) return false;
        budget_bytes -= taken;
        keep(records, record, pool);
        if (record.kind != record_kind::segment) continue;
        if (!pool.well_formed({record.offset, record.bytes})) return false;
        at.next = record.offset;
        at.limit = at.kept = record.offset + record.bytes;
    }
}

/// Reads the log of the section before, of an engine that defers stores, if the pending section
/// still needs it for these stores, or if that section may have left its stores to the pending one
/// (log/lane.hpp, 7).
void read_earlier(const pool_image& pool, cursor at, const begin_payload& begin,
                  std::uint64_t& budget_bytes, lane_image& found) {
    const engine_row* const row = engine_of(begin.engine);
    if (row == nullptr || begin.engine != found.begin.engine ||
        begin.epoch + 1 != found.begin.epoch || begin.epoch <= found.committed)
        return;
    const bool deferred = row->sections == engine_sections::buffered;
    left_payload left{};
    if (!deferred && (row->sections != engine_sections::writes || found.args.size() != sizeof left))
        return;
    if (!deferred) std::memcpy(&left, found.args.data(), sizeof left);
    std::vector<lane_record> records;
    const bool ends = read_records(pool, at, false, budget_bytes, records);
    const auto is_last = [](const lane_record& r) {
        return r.kind == record_kind::new_bytes && r.offset == 1;
    };
    if (ends && (deferred ? std::ranges::any_of(records, is_last) : at.chain == left.chain))
        found.earlier = std::move(records);
}

/// What follows the arguments of a section that runs again, in a log of words.
bool follows_begin(record_kind kind) noexcept {
    return kind == record_kind::overwritten || kind == record_kind::preserve ||
           kind == record_kind::unkept;
}

/// What the begin entry of such a section says. False: none can.
bool read_begin_words(const lane_record& entry, lane_image& out) noexcept {
    if (entry.kind != record_kind::begin || entry.offset > 0xffff || entry.bytes < word_bytes ||
        entry.bytes - word_bytes > args_bytes_max)
        return false;
    std::memcpy(&out.begin.function_version, entry.payload.data(), word_bytes);
    out.begin.floats = static_cast<std::uint16_t>(entry.offset);
    out.begin.args_bytes = static_cast<std::uint32_t>(entry.bytes - word_bytes);
    out.args = entry.payload.subspan(word_bytes);
    return true;
}

/// The log of a section in a medium that keeps order (log/word_log.hpp). Returns the place of the
/// first entry that has no known form; 0: all have one.
std::uint64_t read_words(const pool_image& pool, cursor at, std::uint64_t end,
                         std::uint64_t& budget_bytes, lane_image& out) {
    const engine_row* const engine = engine_of(out.begin.engine);
    const bool again = engine != nullptr && runs_again(*engine);
    for (bool is_first = true; at.next != end; is_first = false) {
        const std::uint64_t here = at.next;
        if (at.limit - here < word_entry_bytes || !pool.has(here, at.limit - here)) return here;
        const std::uint64_t what = pool.word(here);
        const std::uint64_t word = pool.word(here + word_bytes);
        lane_record entry{static_cast<record_kind>(what >> 56), here, what & offset_mask, word, {}};
        const std::uint64_t room = at.limit - here - word_entry_bytes;
        at.next += word_entry_bytes;
        bool is_word = false;
        for (const auto& [kind, first] : {std::pair{record_kind::old_bytes, old_word_kind},
                                          {record_kind::overwritten, overwritten_word_kind}}) {
            if (what >> 56 <= first || what >> 56 > first + word_bytes) continue;
            is_word = true;
            entry.kind = kind;
            entry.bytes = (what >> 56) - first;
            entry.payload = pool.file().subspan(here + word_bytes, entry.bytes);
        }
        if (follows_begin(entry.kind) && !again) return here;
        if (!is_word && has_payload(entry.kind)) {
            const bool old =
                entry.kind == record_kind::old_bytes || entry.kind == record_kind::overwritten;
            if ((old && word <= word_bytes) || word > room ||
                round_up(word, word_entry_bytes) > room)
                return here;
            entry.payload = pool.file().subspan(at.next, word);
            at.next += round_up(word, word_entry_bytes);
            const bool known = old || entry.kind == record_kind::preserve;
            if (!known && !(again && is_first)) return here;
        } else if (!is_word && entry.kind != record_kind::unkept && !names_block(entry.kind)) {
            return here;
        }
        if (entry.bytes == 0 && entry.kind != record_kind::preserve &&
            !(again && entry.kind == record_kind::alloc))
            return here;
        // Behind every entry but its own kind a segment's has room.
        if (entry.kind != record_kind::segment && at.limit - at.next < word_entry_bytes)
            return here;
        const std::uint64_t taken = at.next - here;
        if (taken > budget_bytes) return 0;
        budget_bytes -= taken;
        if (again && is_first) {
            if (!read_begin_words(entry, out)) return here;
            continue;
        }
        out.records.push_back(entry);
        if (entry.kind != record_kind::segment) continue;
        if (!pool.well_formed({entry.offset, entry.bytes})) return 0; // record_fault() says so
        at.next = entry.offset;
        at.limit = entry.offset + entry.bytes;
    }
    return 0;
}

/// The section whose word log that is. Returns what read_words() does.
std::uint64_t read_pending_words(const pool_image& pool, std::uint64_t half_bytes,
                                 std::uint64_t end, std::uint64_t& budget_bytes, lane_image& out) {
    const auto header_word = [&](std::size_t at) { return pool.word(out.offset + at); };
    const std::uint64_t witness = header_word(offsetof(lane_header, witness));
    if (witness != 0 && witness != lane_unordered && witness != witness_of(out.committed) &&
        witness != witness_of(out.committed + 1)) {
        out.damage = "a mark with its witness";
        out.damaged_at = out.offset;
    }
    out.pending = true;
    out.begin = {out.committed + 1,
                 header_word(offsetof(lane_header, logged_function)),
                 0,
                 static_cast<std::uint16_t>(header_word(offsetof(lane_header, logged_engine))),
                 0,
                 0};
    out.announced = 0;
    out.args = {};
    out.records.clear();
    const std::uint64_t first = out.offset + sizeof(lane_header);
    return read_words(pool, {first + line_bytes, first + half_bytes, 0, 0}, end, budget_bytes, out);
}

bool in_heap(const pool_image& pool, std::uint64_t offset, std::uint64_t bytes) noexcept {
    const extent_image* e = pool.extent_of(offset);
    return e != nullptr && bytes <= e->data_offset + e->chunks * pool.chunk_bytes() - offset;
}

/// Whether a new_bytes record holds whole stores, each to bytes of the heap.
bool stores_in_heap(const pool_image& pool, std::span<const std::byte> stores) noexcept {
    while (!stores.empty()) {
        deferred_store head;
        if (stores.size() < sizeof head) return false;
        std::memcpy(&head, stores.data(), sizeof head);
        if (head.mask() == 0) {
            deferred_run run;
            if (stores.size() < sizeof run) return false;
            std::memcpy(&run, stores.data(), sizeof run);
            stores = stores.subspan(sizeof run);
            if (run.granules == 0 || run.granules > stores.size() / granule_bytes ||
                head.offset() % granule_bytes != 0 ||
                !in_heap(pool, head.offset(), run.granules * granule_bytes))
                return false;
            stores = stores.subspan(run.granules * granule_bytes);
            continue;
        }
        const std::uint64_t words = ((head.mask() & 0xff) != 0) + (head.mask() >> 8 != 0);
        const std::uint64_t bytes = sizeof head + words * word_bytes;
        if (bytes > stores.size() || head.offset() % granule_bytes != 0 ||
            !in_heap(pool, head.offset(), granule_bytes))
            return false;
        stores = stores.subspan(bytes);
    }
    return true;
}

} // namespace

lane_image read_lane(const pool_image& pool, std::uint32_t lane, std::uint64_t& budget_bytes) {
    const pool_header& h = pool.header();
    lane_image out;
    out.lane = lane;
    out.offset = h.lanes_offset + lane * h.lane_bytes;
    out.committed = pool.word(out.offset);
    const std::uint64_t half_bytes =
        round_down((h.lane_bytes - sizeof(lane_header)) / 2, line_bytes);
    const std::uint64_t witness = pool.word(out.offset + offsetof(lane_header, witness));
    std::uint64_t newest_flags = in_order_bit; // in the offset of the newest begin record
    cursor at{};
    cursor behind[2]{}; // the halves' begin records
    begin_payload begins[2]{};
    for (std::uint64_t half = 0; half < 2; ++half) {
        const std::uint64_t start = out.offset + sizeof(lane_header) + half * half_bytes;
        cursor first{start, start + half_bytes, first_chain, start + half_bytes};
        begin_payload& begin = begins[half];
        lane_record record;
        if (!read_begin(pool, first, record, begin) || begin.epoch % 2 != half) {
            begin = {};
            out.halves[half] = {start, 0, pool.word(start) != ~first_chain};
            continue;
        }
        behind[half] = first;
        out.halves[half] = {start, begin.epoch, false};
        if (begin.epoch <= out.newest) continue;
        out.newest = begin.epoch;
        newest_flags = record.offset;
        if (begin.epoch <= out.committed) continue;
        at = first;
        out.begin = begin;
        out.announced = record.offset & (in_order_bit - 1);
        out.args = record.payload.subspan(sizeof begin);
        out.pending = true;
    }
    const auto damaged = [&](const char* what, std::uint64_t where) {
        if (*out.damage != 0) return;
        out.damage = what;
        out.damaged_at = where;
    };
    if (const std::uint64_t logged = pool.word(out.offset + offsetof(lane_header, logged));
        logged != 0) {
        if (out.pending) damaged("no log of words beside a log of records", out.offset);
        if (const std::uint64_t at =
                read_pending_words(pool, half_bytes, logged, budget_bytes, out))
            damaged("an entry of a log of words", at);
        return out;
    }
    const bool with_kept = h.open != 0 && marks_of(h).drop_bytes == 0;
    const bool log_ends =
        !out.pending || read_records(pool, at, with_kept, budget_bytes, out.records);
    const std::uint64_t before = 1 - out.newest % 2;
    if (out.pending) read_earlier(pool, behind[before], begins[before], budget_bytes, out);
    if (out.pending && (newest_flags & in_order_bit) != 0 && witness == 0)
        damaged("a mark with its witness", out.offset);
    // A build without order has used the lane since, and left the witness unchanged.
    if (witness == 0 || witness == lane_unordered || (newest_flags & in_order_bit) == 0) return out;
    if (witness != witness_of(out.committed) && witness != witness_of(out.committed + 1))
        damaged("a mark with its witness", out.offset);
    if (out.pending && log_ends &&
        (at.limit - at.next < word_bytes || pool.word(at.next) != ~at.chain))
        damaged("a record or the mark of the log's end", at.next);
    if (out.pending && log_ends && with_kept &&
        (at.kept < at.next + word_bytes || pool.word(at.kept - word_bytes) != ~at.kept_chain))
        damaged("a kept record or the mark of their end", at.kept - word_bytes);
    for (const half_image& half : out.halves)
        if (!out.pending && half.damaged) damaged("a begin record or the mark of none", half.at);
    return out;
}

const char* record_fault(const pool_image& pool, const lane_record& r) noexcept {
    switch (r.kind) {
    case record_kind::preserve:
    case record_kind::unkept:
    case record_kind::resumed: return "";
    case record_kind::new_bytes:
        return stores_in_heap(pool, r.payload) ? "" : "whole stores to bytes of the heap";
    case record_kind::overwritten:
    case record_kind::old_bytes: return in_heap(pool, r.offset, r.bytes) ? "" : "bytes of the heap";
    case record_kind::filled: {
        filled_payload filled;
        if (r.payload.size() != sizeof filled) return "a length and a sum";
        std::memcpy(&filled, r.payload.data(), sizeof filled);
        return in_heap(pool, r.offset, filled.bytes) ? "" : "bytes of the heap";
    }
    case record_kind::alloc:
        if (r.offset == 0) return "";
        [[fallthrough]];
    case record_kind::free:
    case record_kind::staged:
    case record_kind::segment:
        return pool.well_formed({r.offset, r.bytes}) ? "" : "a block of the heap";
    case record_kind::begin: return "no second begin record";
    case record_kind::own:
    case record_kind::made: break; // read as two others
    }
    return "a known kind of record";
}

const char* name_of(record_kind kind) noexcept {
    switch (kind) {
    case record_kind::begin: return "begin";
    case record_kind::preserve: return "preserve";
    case record_kind::old_bytes: return "old bytes";
    case record_kind::alloc: return "alloc";
    case record_kind::free: return "free";
    case record_kind::staged: return "staged";
    case record_kind::segment: return "segment";
    case record_kind::resumed: return "resumed";
    case record_kind::filled: return "filled";
    case record_kind::made: return "made";
    case record_kind::overwritten: return "overwritten";
    case record_kind::unkept: return "unkept";
    case record_kind::new_bytes: return "new bytes";
    case record_kind::own: return "own";
    }
    return "unknown";
}

} // namespace hf::verify
