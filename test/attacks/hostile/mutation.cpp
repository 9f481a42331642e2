// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "mutation.hpp"

#include "sections.hpp"
#include <base/engines.hpp>
#include <base/line.hpp>
#include <justdo/format.hpp>
#include <persist/float_environment.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hf::hostile {
namespace {

constexpr std::uint64_t chain_start = 0x686f6c6466617374ULL;
constexpr std::uint64_t word = sizeof(std::uint64_t);

void add_words(std::vector<std::uint64_t>& to, std::uint64_t from, std::uint64_t bytes) {
    for (std::uint64_t at = from; at + word <= from + bytes; at += word) to.push_back(at);
}

std::uint64_t half_bytes(const pool_header& h) {
    return round_down((h.lane_bytes - sizeof(lane_header)) / 2, line_bytes);
}

std::uint64_t check_at(std::span<const std::byte> file, std::uint64_t at, const record_head& head,
                       std::uint64_t chain) {
    const bool with = has_payload(static_cast<record_kind>(head.what >> 56));
    return record_check(head.what, head.bytes, file.data() + at + sizeof head,
                        with ? head.bytes : 0, chain);
}

/// Bytes that the record at 'at' takes; 0 when it does not fit.
std::uint64_t record_extent(const record_head& head, std::uint64_t room) {
    const bool with = has_payload(static_cast<record_kind>(head.what >> 56));
    if (room < sizeof head || (with && head.bytes > room)) return 0;
    const std::uint64_t bytes = lane_writer::record_bytes(with ? head.bytes : 0);
    return bytes > room ? 0 : bytes;
}

/// Bytes of the kept record that ends at 'end', behind 'records' others; 0 if none fits.
std::uint64_t kept_extent(std::span<const std::byte> file, std::uint64_t from, std::uint64_t end,
                          std::uint64_t records, kept_head& head) {
    if (end > file.size() || end < from || end - from < sizeof head) return 0;
    head = load_from<kept_head>(file, end - sizeof head);
    const std::uint64_t payload = head.bytes << 16 >> 16;
    if (head.bytes >> kept_bytes_bits != (records & 0xffff) || payload == 0 ||
        payload > end - from || !is_of(record_kind::overwritten, head.what))
        return 0;
    const std::uint64_t bytes = lane_writer::record_bytes(payload);
    return bytes > end - from ? 0 : bytes;
}

std::uint64_t kept_check_at(std::span<const std::byte> file, std::uint64_t record,
                            const kept_head& head, std::uint64_t chain, std::uint64_t kept_chain) {
    const lane_position at{nullptr, nullptr, chain, nullptr, kept_chain, 0};
    return kept_check(at, head.what, head.bytes, file.data() + record, head.bytes << 16 >> 16);
}

} // namespace

pool_map::pool_map(const base_pool& of) : file_bytes(of.bytes.size()) {
    const std::span<const std::byte> file = of.bytes;
    header = load_from<pool_header>(file, 0);
    for (std::uint64_t copy : {header_a_offset, header_b_offset}) {
        add_words(header_words, copy, offsetof(pool_header, extents) + 6 * sizeof(extent));
        add_words(header_words, copy + offsetof(pool_header, checksum), word);
    }
    add_words(root_words, root_words_offset, sizeof(hf::root_words));
    const extent& last = header.extents[header.extent_count - 1];
    const std::uint64_t end = last.offset_bytes + last.size_bytes;
    if (file_bytes > end) add_words(seal_words, end, file_bytes - end);
    edges = {0, header_b_offset, root_words_offset, lanes_start_offset, end, header.max_bytes};
    map_logs(file);
    map_heap(file);
    map_mod(file);
    map_justdo(file);
    const auto root = load_from<hf::root_words>(file, root_words_offset);
    if (of.served != nullptr) add_words(object_words, root.root_offset, root.root_bytes);
}

void pool_map::map_logs(std::span<const std::byte> file) {
    for (std::uint64_t lane = 0; lane < header.lane_count; ++lane) {
        const std::uint64_t at = header.lanes_offset + lane * header.lane_bytes;
        edges.push_back(at);
        add_words(lane_words, at, sizeof(lane_header));
        for (std::uint64_t half = 0; half < 2; ++half) {
            log found{at + sizeof(lane_header) + half * half_bytes(header), {}};
            std::uint64_t next = found.start, limit = next + half_bytes(header),
                          chain = chain_start, kept = limit, kept_chain = 0, records = 0;
            for (;;) {
                kept_head behind;
                while (const std::uint64_t bytes = kept_extent(file, next, kept, records, behind)) {
                    if (behind.check !=
                        kept_check_at(file, kept - bytes, behind, chain, kept_chain))
                        break;
                    kept_chain = behind.check;
                    kept -= bytes;
                    add_words(lane_words, kept, bytes);
                }
                const auto head = load_from<record_head>(file, next);
                const std::uint64_t bytes = record_extent(head, limit - next);
                if (bytes == 0 || head.check != check_at(file, next, head, chain)) break;
                found.heads.push_back(next);
                add_words(lane_words, next, bytes);
                chain = head.check;
                ++records;
                next += bytes;
                if (static_cast<record_kind>(head.what >> 56) != record_kind::segment) continue;
                next = head.what & ((std::uint64_t{1} << 56) - 1);
                limit = kept = next + head.bytes;
            }
            logs.push_back(found);
        }
    }
}

void pool_map::map_heap(std::span<const std::byte> file) {
    const size_classes classes(header.chunk_bytes);
    for (std::uint32_t i = 0; i < header.extent_count; ++i) {
        const extent& e = header.extents[i];
        const extent_split split =
            split_extent(e.size_bytes, header.chunk_bytes, header.laid_out_bytes[i]);
        const std::uint64_t data = e.offset_bytes + split.metadata_bytes;
        const std::uint64_t bits = e.offset_bytes + split.entry_table_bytes;
        add_words(table_words, e.offset_bytes, split.chunks * word);
        add_words(table_words, bits, split.chunks * header.chunk_bytes / granule_bytes / 8);
        edges.insert(edges.end(), {e.offset_bytes, data, data + split.chunks * header.chunk_bytes});
        for (std::uint64_t c = 0; c < split.chunks; ++c) {
            const chunk_entry entry{load_from<std::uint64_t>(file, e.offset_bytes + c * word)};
            const std::uint64_t start = data + c * header.chunk_bytes;
            const std::uint64_t size = entry.kind() == chunk_kind::slab
                                           ? classes.block_bytes(entry.size_class())
                                           : header.chunk_bytes;
            for (std::uint64_t at = start; at + size <= start + header.chunk_bytes; at += size) {
                const std::uint64_t granule = (at - data) / granule_bytes;
                const bool set =
                    (load_from<std::uint64_t>(file, bits + granule / 64 * word) >> granule % 64 &
                     1) != 0;
                const bool large = entry.kind() == chunk_kind::large;
                const block b{at, large && set ? entry.run_chunks() * header.chunk_bytes : size};
                (set ? blocks : free_slots).push_back(b);
                if (set) add_words(object_words, b.offset, std::min<std::uint64_t>(b.bytes, 512));
            }
        }
    }
}

void pool_map::map_justdo(std::span<const std::byte> file) {
    const auto root = load_from<hf::root_words>(file, root_words_offset);
    if (root.anchor(engine_justdo) == 0) return;
    const auto super = load_from<justdo::superblock>(file, root.anchor(engine_justdo));
    add_words(justdo_words, root.anchor(engine_justdo), sizeof super + 8 * word);
    for (std::uint64_t t = 0; t < super.threads_max; ++t) {
        const auto at =
            load_from<std::uint64_t>(file, root.anchor(engine_justdo) + sizeof super + t * word);
        if (at == 0) continue;
        justdo_threads.push_back(at);
        add_words(justdo_words, at, sizeof(justdo::thread_log) + word);
        add_words(justdo_words, at + offsetof(justdo::thread_block, locks),
                  6 * sizeof(justdo::lock_place));
        add_words(justdo_words, at + offsetof(justdo::thread_block, stages), 4 * word);
        add_words(justdo_words, at + sizeof(justdo::thread_block), 512); // frames
        const auto block = load_from<justdo::thread_block>(file, at);
        add_words(justdo_words, at + offsetof(justdo::thread_block, more_locks), 2 * word);
        for (std::uint64_t more : {block.more_locks, block.more_frames})
            for (; more != 0; more = load_from<justdo::more_head>(file, more).next)
                add_words(justdo_words, more, sizeof(justdo::more_head) + 12 * word);
    }
}

void mutator::note(const char* what, std::uint64_t at, std::uint64_t value) {
    if (tell) story += fmt::format("  {} at {:#x}: {:#x}\n", what, at, value);
}

std::uint64_t mutator::interesting_offset() {
    switch (pick(4)) {
    case 0: return one_of(map_->edges) + pick(5) * 8 - 16;
    case 1: return one_of(map_->blocks).offset + (chance(70) ? 0 : pick(64));
    case 2:
        return map_->free_slots.empty() ? pick(map_->file_bytes) : one_of(map_->free_slots).offset;
    default: return pick(map_->file_bytes + 64);
    }
}

std::uint64_t mutator::interesting_pointer() {
    const std::uint64_t base = map_->header.base_address;
    switch (pick(8)) {
    case 0: return 0;
    case 1: return base - 1 - pick(64);
    case 2: return base + map_->header.max_bytes - 8 + pick(32);
    case 3: return pick(4096);
    case 4: return (*random_)();
    default: return base + interesting_offset();
    }
}

std::uint64_t mutator::interesting(std::uint64_t old) {
    const auto bit = [&] { return std::uint64_t{1} << pick(64); };
    switch (pick(12)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return ~std::uint64_t{0};
    case 3: return old + 1;
    case 4: return old - 1;
    case 5: return old ^ bit();
    case 6: return bit() + pick(3) - 1;
    case 7: return interesting_offset();
    case 8: return interesting_pointer();
    case 9: return map_->header.chunk_bytes * pick(40);
    case 10: return old * 2;
    default: return (*random_)();
    }
}

block mutator::interesting_block() {
    block b =
        chance(50) || map_->free_slots.empty() ? one_of(map_->blocks) : one_of(map_->free_slots);
    if (chance(15)) b.offset = interesting_offset();
    if (chance(10)) b.bytes = interesting(b.bytes);
    if (chance(10)) b.bytes = map_->header.chunk_bytes * (1 + pick(4));
    return b;
}

void mutator::mutate() {
    const std::uint64_t times = chance(50) ? 1 : chance(80) ? 2 + pick(4) : 6 + pick(14);
    for (std::uint64_t i = 0; i < times; ++i) mutate_once();
    if (headers_touched_ && chance(92)) mend_headers();
}

void mutator::mutate_once() {
    if (!map_->mod_nodes.empty() && chance(80)) return mutate_mod();
    if (!map_->justdo_threads.empty() && chance(75)) return mutate_justdo();
    switch (pick(20)) {
    case 0:
    case 1:
    case 2: return mutate_header();
    case 3: return mutate_word(map_->root_words, "root word");
    case 4:
    case 5: return mutate_word(map_->lane_words, "lane word");
    case 6:
    case 7:
    case 8: return mutate_word(map_->table_words, "table word");
    case 9:
    case 10: return mutate_word(map_->object_words, "object word");
    case 11: return mutate_word(map_->seal_words, "seal word");
    case 12:
    case 13:
    case 14: return mutate_record();
    case 15:
    case 16: return append_record();
    case 17: return forge_log();
    case 18: return mutate_length();
    default: return mutate_byte();
    }
}

void mutator::mutate_word(const std::vector<std::uint64_t>& words, const char* what) {
    if (words.empty()) return mutate_byte();
    const std::uint64_t at = one_of(words);
    if (chance(15)) { // half a word: counts and sizes of 32 bits
        const std::uint64_t half = at + 4 * pick(2);
        store(half, static_cast<std::uint32_t>(interesting(load<std::uint32_t>(half))));
        return note(what, half, load<std::uint32_t>(half));
    }
    store(at, interesting(load<std::uint64_t>(at)));
    note(what, at, load<std::uint64_t>(at));
    if (what[0] == 'l' && chance(85))
        for (const auto& log : map_->logs) mend_log(log);
}

/// A word of engine justdo's, or a whole log entry, which nothing but bounds protects.
void mutator::mutate_justdo() {
    using namespace justdo;
    if (chance(60)) return mutate_word(map_->justdo_words, "justdo word");
    const std::uint64_t at = one_of(map_->justdo_threads);
    auto log = load<thread_log>(at);
    const program_counter pc{log.counter};
    const auto place = [&] { return interesting_offset() & ((std::uint64_t{1} << 48) - 1); };
    const std::uint64_t sizes[] = {0, 1, 2, 3, 4, 8, 8, 127};
    const auto what = static_cast<action>(pick(10));
    log_entry& entry = log.entries[chance(85) ? pc.active() : 1 - pc.active()];
    entry = {log_entry::where_of(what, sizes[pick(8)], place()) |
                 (chance(20) ? log_entry::before_too : 0),
             interesting(entry.value), interesting(entry.extra)};
    if (what == action::copy || what == action::move) {
        entry.value = place() | (what == action::move ? pick(300) << 48 : 0);
        if (chance(60)) entry.extra = pick(600) | (chance(50) ? move_rest::from_end : 0);
    }
    if (what == action::alloc || what == action::free) {
        const block b = interesting_block();
        entry.value = b.offset, entry.extra = b.bytes;
    }
    if (what == action::lock || what == action::unlock) {
        entry.value = lock_word(static_cast<std::uint32_t>(pick(5)), place());
        entry.extra = pick(chance(50) ? lock_places + 2 : 400);
    }
    if (chance(25))
        log.counter = program_counter::at(static_cast<unsigned>(pick(2)), pick(6),
                                          pick(8) | (chance(20) ? 0x800000 : 0))
                          .word;
    store(at, log);
    note("justdo log", at, entry.where);
    if (!chance(30)) return;
    const lock_place locks{lock_word(static_cast<std::uint32_t>(pick(5)), place()),
                           lock_word(static_cast<std::uint32_t>(pick(5)), place())};
    const std::uint64_t where =
        at + offsetof(thread_block, locks) + pick(lock_places) * sizeof(lock_place);
    store(where, locks);
    note("justdo lock", where, locks.owned);
}

void mutator::mutate_header() {
    headers_touched_ = true;
    mutate_word(map_->header_words, "header word");
    // Makes both copies alike, or the mutated one the newer, so that the mutated one counts.
    if (chance(60)) {
        auto h = load<pool_header>(chance(50) ? header_a_offset : header_b_offset);
        store(header_a_offset, h);
        store(header_b_offset, h);
    }
}

void mutator::mend_headers() {
    for (std::uint64_t copy : {header_a_offset, header_b_offset}) {
        auto h = load<pool_header>(copy);
        h.checksum = header_checksum(h);
        store(copy, h);
    }
}

void mutator::mutate_length() {
    const std::uint64_t end = map_->file_bytes;
    if (chance(70)) file_bytes_ = chance(50) ? pick(end + 1) : std::min(interesting_offset(), end);
    else file_bytes_ = std::min<std::uint64_t>(memory_.size(), end + pick(8192));
    note("file length", file_bytes_, end);
}

void mutator::mutate_byte() {
    const std::uint64_t at = pick(map_->file_bytes);
    store(at, static_cast<std::uint8_t>((*random_)()));
    if (at < root_words_offset) headers_touched_ = true;
    note("byte", at, load<std::uint8_t>(at));
}

mutator::position mutator::start_of(const pool_map::log& log) const {
    const std::uint64_t end = log.start + half_bytes(map_->header);
    return {log.start, end, chain_start, end};
}

/// Moves behind the record at 'at' as a reader would; false where none could be.
bool mutator::step_over(position& at, bool write_check) {
    auto head = load<record_head>(at.at);
    const std::uint64_t bytes = record_extent(head, at.limit - at.at);
    if (bytes == 0 || at.at + bytes > memory_.size()) return false;
    if (write_check) {
        head.check = check_at(memory_, at.at, head, at.chain);
        store(at.at, head);
    }
    at.chain = head.check;
    ++at.records;
    at.at += bytes;
    if (static_cast<record_kind>(head.what >> 56) == record_kind::segment) {
        at.at = head.what & ((std::uint64_t{1} << 56) - 1);
        at.limit = at.kept = at.at + head.bytes;
        if (at.limit > memory_.size() || at.limit < at.at) return false;
    }
    // The end mark; of a record that follows, the check takes its place.
    if (write_check && at.at + word <= at.limit) store(at.at, ~at.chain);
    step_over_kept(at, write_check);
    return true;
}

/// Moves over the kept records that are chained to the record before.
void mutator::step_over_kept(position& at, bool write_check) {
    kept_head head;
    while (const std::uint64_t bytes = kept_extent(memory_, at.at, at.kept, at.records, head)) {
        if (write_check) {
            head.check = kept_check_at(memory_, at.kept - bytes, head, at.chain, at.kept_chain);
            store(at.kept - sizeof head, head);
        }
        at.kept_chain = head.check;
        at.kept -= bytes;
    }
    if (write_check && at.at + word <= at.kept) store(at.kept - word, ~at.kept_chain);
}

/// A kept record at the position.
void mutator::put_kept(position& at, std::uint64_t offset, std::span<const std::byte> payload) {
    const std::uint64_t total = lane_writer::record_bytes(payload.size());
    if (payload.empty() || at.kept > memory_.size() || at.at + total > at.kept) return;
    const kept_head head{
        at.records << kept_bytes_bits | payload.size(),
        static_cast<std::uint64_t>(record_kind::overwritten) << 56 | (offset << 8 >> 8), 0};
    std::memcpy(memory_.data() + at.kept - total, payload.data(), payload.size());
    store(at.kept - sizeof head, head);
    note("kept record", at.kept - total, offset);
    step_over_kept(at, true);
}

/// Makes the checks right again, over as many records as there were.
void mutator::mend_log(const pool_map::log& log) {
    position at = start_of(log);
    for (std::size_t i = 0; i < log.heads.size(); ++i)
        if (!step_over(at, true)) return;
}

void mutator::mutate_record() {
    const pool_map::log& log = one_of(map_->logs);
    if (log.heads.empty()) return forge_log();
    const std::uint64_t at = one_of(log.heads);
    auto head = load<record_head>(at);
    const std::uint64_t old = head.what & ((std::uint64_t{1} << 56) - 1);
    switch (pick(5)) {
    case 0: head.what = (head.what << 8 >> 8) | pick(16) << 56; break;
    case 1: head.what = (head.what >> 56 << 56) | (interesting_offset() << 8 >> 8); break;
    case 2: head.bytes = interesting(head.bytes); break;
    case 3: {
        const block b = interesting_block();
        head.what = (head.what >> 56 << 56) | (b.offset << 8 >> 8);
        head.bytes = b.bytes;
        break;
    }
    default: { // the payload: arguments, epoch, function, old bytes
        const std::uint64_t words = std::min<std::uint64_t>(head.bytes, 4096) / word;
        const std::uint64_t place = at + sizeof head + pick(words + 1) * word;
        store(place, chance(50) ? interesting_pointer() : interesting(load<std::uint64_t>(place)));
        note("payload word", place, load<std::uint64_t>(place));
    }
    }
    head.check = load<record_head>(at).check;
    store(at, head);
    note("record head, was", at, old);
    if (chance(95)) mend_log(log);
}

bool mutator::put_record(position& at, record_kind kind, std::uint64_t offset, std::uint64_t bytes,
                         std::span<const std::byte> payload) {
    record_head head{0, static_cast<std::uint64_t>(kind) << 56 | (offset << 8 >> 8), bytes};
    const std::uint64_t total = lane_writer::record_bytes(payload.size());
    if (at.at + total > at.limit || at.at + total > memory_.size()) return false;
    store(at.at, head);
    if (!payload.empty())
        std::memcpy(memory_.data() + at.at + sizeof head, payload.data(), payload.size());
    note("record of kind", at.at, static_cast<std::uint64_t>(kind));
    return step_over(at, true);
}

/// Stores that wait for the commit, to objects for the most part; the last record of its section,
/// or not.
void mutator::put_new_bytes(position& at) {
    std::vector<std::uint64_t> payload;
    for (std::uint64_t n = pick(5); n > 0; --n) {
        const std::uint64_t to = chance(70) ? one_of(map_->object_words) : interesting_offset();
        if (chance(30)) { // a run, whose stated length may be wrong
            const std::uint64_t granules = pick(8);
            payload.push_back(to / granule_bytes * granule_bytes << 16);
            payload.push_back(chance(70) ? granules : interesting(granules));
            for (std::uint64_t w = 0; w < 2 * granules; ++w)
                payload.push_back(interesting_pointer());
            continue;
        }
        const std::uint64_t mask = chance(60) ? 0xffff : pick(65536);
        payload.push_back((chance(90) ? to / granule_bytes * granule_bytes : to) << 16 | mask);
        for (std::uint64_t half : {mask & 0xff, mask >> 8})
            if (half != 0) payload.push_back(interesting_pointer());
    }
    if (!payload.empty() && chance(10)) payload.pop_back();
    (void)put_record(at, record_kind::new_bytes, chance(70) ? 1 : pick(3), payload.size() * word,
                     std::as_bytes(std::span(payload)));
}

void mutator::put_random_record(position& at) {
    const auto kind = static_cast<record_kind>(chance(92) ? 2 + pick(13) : pick(256));
    if (kind == record_kind::new_bytes) return put_new_bytes(at);
    std::vector<std::byte> payload;
    block b = interesting_block();
    if (has_payload(kind)) {
        payload.resize(chance(80) ? 8 : chance(80) ? pick(300) : pick(3000));
        for (std::size_t i = 0; i < payload.size(); ++i)
            payload[i] = static_cast<std::byte>((*random_)());
        if (payload.size() == 8) {
            const std::uint64_t value = interesting_pointer();
            std::memcpy(payload.data(), &value, 8);
        }
        b.bytes = payload.size();
        if (kind == record_kind::old_bytes && chance(70)) b.offset = one_of(map_->object_words);
        if (kind == record_kind::preserve && chance(50)) {
            payload.resize(sizeof(node::text));
            b.bytes = payload.size();
        }
    }
    if (kind == record_kind::alloc && chance(60)) b.bytes = 208; // what a node occupies
    if (kind == record_kind::segment && chance(70))
        b.bytes = map_->header.chunk_bytes * (2 + pick(2));
    if (has_payload(kind) && chance(15)) return put_kept(at, b.offset, payload);
    (void)put_record(at, kind, b.offset, b.bytes, payload);
}

/// Adds records to the end of a log, up to the last byte of its half at times.
void mutator::append_record() {
    const pool_map::log& log = one_of(map_->logs);
    position at = start_of(log);
    for (std::size_t i = 0; i < log.heads.size(); ++i)
        if (!step_over(at, false)) return;
    if (chance(10)) { // no room behind it
        const std::uint64_t room = at.limit - at.at;
        if (room > sizeof(record_head) && room <= 65536) {
            std::vector<std::byte> payload(room - sizeof(record_head));
            (void)put_record(at, record_kind::preserve, 0, payload.size(), payload);
        }
        return;
    }
    for (std::uint64_t n = 1 + pick(4); n > 0; --n) put_random_record(at);
}

bool mutator::put_begin(position& at, std::uint64_t half) {
    const std::uint64_t which = pick(std::size(function_ids));
    const std::uint32_t args_bytes = function_args_bytes[which];
    const std::uint64_t lane = (at.at - map_->header.lanes_offset) / map_->header.lane_bytes;
    const auto committed =
        load<std::uint64_t>(map_->header.lanes_offset + lane * map_->header.lane_bytes);
    begin_payload begin{
        (committed + 2 + pick(4)) / 2 * 2 + half,     function_ids[which], 1, engine_clobber,
        persist::float_environment::current().bits(), args_bytes};
    if (chance(40)) begin.engine = chance(60) ? engine_undo : engine_redo;
    if (begin.engine != engine_clobber) begin.args_bytes = 0;
    if (chance(5)) begin.epoch = interesting(begin.epoch);
    if (chance(3)) begin.function_id = interesting(begin.function_id);
    if (chance(3)) begin.engine = static_cast<std::uint16_t>(interesting(begin.engine));
    if (chance(3)) begin.floats = static_cast<std::uint16_t>(interesting(begin.floats));
    std::vector<std::byte> payload(sizeof begin + begin.args_bytes);
    std::memcpy(payload.data(), &begin, sizeof begin);
    for (std::uint32_t i = 0; i + 8 <= begin.args_bytes; i += 8) {
        const std::uint64_t argument = chance(60)
                                           ? map_->header.base_address + one_of(map_->blocks).offset
                                           : interesting_pointer();
        std::memcpy(payload.data() + sizeof begin + i, &argument, 8);
    }
    if (which == 3 && begin.args_bytes == 16) { // rounds
        const std::uint64_t rounds = chance(98) ? pick(3) : interesting(1);
        std::memcpy(payload.data() + sizeof begin + 8, &rounds, 8);
    }
    return put_record(at, record_kind::begin, pick(50) == 0 ? interesting(0) : 0, payload.size(),
                      payload);
}

/// A whole log of a section that never ran.
void mutator::forge_log() {
    const std::uint64_t which = pick(map_->logs.size());
    position at = start_of(map_->logs[which]);
    if (!put_begin(at, which % 2)) return;
    if (chance(60)) {
        const std::vector<std::byte> text(sizeof(node::text));
        (void)put_record(at, record_kind::preserve, 0, text.size(), text);
    }
    for (std::uint64_t n = pick(8); n > 0; --n) put_random_record(at);
}

} // namespace hf::hostile
