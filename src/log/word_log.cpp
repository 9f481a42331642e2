// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <base/engines.hpp>
#include <base/words.hpp>
#include <log/word_log.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

constinit __thread hf_word_log hf_words{};

namespace hf {
namespace {

constexpr std::uint64_t offset_mask = (std::uint64_t{1} << 56) - 1;

/// How much of the lane's room entries in line leave to calls.
constexpr std::uint64_t spare_of(std::uint64_t room) noexcept {
    return std::min<std::uint64_t>(16 * word_entry_bytes, round_down(room / 4, word_entry_bytes));
}

/// Whether a log may have such an entry. 'again': that of a section that runs again.
bool may_have(record_kind kind, std::uint64_t bytes, bool again) noexcept {
    switch (kind) {
    case record_kind::old_bytes: return bytes > word_bytes;
    case record_kind::overwritten: return again && bytes > word_bytes;
    case record_kind::begin:
        return again && bytes >= word_bytes && bytes <= word_bytes + args_bytes_max;
    case record_kind::preserve: return again;
    case record_kind::unkept: return again && bytes > 0;
    case record_kind::alloc: return again || bytes > 0; // no room for more than a pool has: 0
    default: return names_block(kind) && bytes > 0;
    }
}

/// Reads the entry at 'at' and moves on. False: none can have been written there.
bool read_entry(lane_position& at, bool again, record_view& out) noexcept {
    const auto room = static_cast<std::uint64_t>(at.limit - at.next);
    if (room < word_entry_bytes) return false;
    std::uint64_t what = 0;
    std::memcpy(&what, at.next, sizeof what);
    std::byte* const word = at.next + sizeof what;
    const auto kind = static_cast<unsigned>(what >> 56);
    std::uint64_t taken = word_entry_bytes;
    if (kind < old_word_kind) {
        out = {static_cast<record_kind>(kind), what & offset_mask, 0, at.next + word_entry_bytes};
        std::memcpy(&out.bytes, word, sizeof out.bytes);
        if (!may_have(out.kind, out.bytes, again)) return false;
        if (has_payload(out.kind)) {
            if (out.bytes > room) return false;
            taken = word_log::long_entry_bytes(out.bytes);
        }
    } else {
        const bool unread = kind > overwritten_word_kind;
        out = {unread ? record_kind::overwritten : record_kind::old_bytes, what & offset_mask,
               kind - (unread ? overwritten_word_kind : old_word_kind), word};
        if (out.bytes == 0 || out.bytes > word_bytes || (unread && !again)) return false;
    }
    // Behind every entry but its own kind a segment's has room.
    const std::uint64_t behind = out.kind == record_kind::segment ? 0 : word_entry_bytes;
    if (taken + behind > room) return false;
    at.next += taken;
    return true;
}

/// What its begin entry says. False: no section's can.
bool read_begin(const record_view& entry, pending_section& found) {
    if (entry.kind != record_kind::begin || entry.offset >> 16 != 0) return false;
    std::memcpy(&found.begin.function_version, entry.payload, word_bytes);
    found.begin.floats = static_cast<std::uint16_t>(entry.offset);
    found.args.assign(entry.payload + word_bytes, entry.payload + entry.bytes);
    found.begin.args_bytes = static_cast<std::uint32_t>(found.args.size());
    return true;
}

} // namespace

lane_position word_log_room(pool_file& file, std::uint32_t lane) noexcept {
    lane_position half = lane_start(file, lane, 0);
    half.next +=
        line_bytes; // the half itself begins with an end mark, and so no section of the other kind
    return half;
}

void word_log::start(pool_file& file, std::uint32_t lane, std::uint32_t engine,
                     std::uint64_t function) noexcept {
    set_room(file, lane);
    HF_ASSERT_SLOW(header_->logged == 0);
    const lane_position half = lane_start(file, lane, 0);
    std::uint64_t first = 0;
    std::memcpy(&first, half.next, sizeof first);
    if (first != ~half.chain) [[unlikely]] // upholds lane.hpp (4): what follows is no record
        lane_writer::store_in_order(half.next, ~half.chain);
    give_room();
    store(&header_->logged_engine, engine);
    store(&header_->logged_function, function);
}

void word_log::set_room(pool_file& file, std::uint32_t lane) noexcept {
    base_ = file.base();
    header_ = lane_at(file, lane);
    const lane_position room = word_log_room(file, lane);
    first_ = reinterpret_cast<char*>(room.next);
    limit_ = reinterpret_cast<char*>(room.limit - word_entry_bytes);
    spare_ = spare_of(static_cast<std::uint64_t>(limit_ - first_));
    limit_ -= spare_;
    words_end_ = file.shape().max_bytes - (word_bytes - 1);
}

void word_log::go_on(pool_file& file, std::uint32_t lane, const lane_position& end) noexcept {
    set_room(file, lane);
    give_room();
    hf_words.next = room_ = reinterpret_cast<char*>(end.next);
    hf_words.limit = reinterpret_cast<char*>(end.limit - word_entry_bytes);
    spare_ = 0;
    HF_ASSERT_SLOW(hf_words.next <= hf_words.limit); // read_entry() has seen to that
}

void word_log::add_long(record_kind kind, std::uint64_t offset, const void* from,
                        std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(fits(long_entry_bytes(bytes)));
    std::memcpy(hf_words.next + word_entry_bytes, from, bytes);
    append(what_of(kind, offset), bytes, long_entry_bytes(bytes));
    // count_entries() will take it for as many as it is long.
    persist::thread_counters().log_entries -= long_entry_bytes(bytes) / word_entry_bytes - 1;
}

void word_log::add_bytes(record_kind kind, unsigned word_kind, std::uint64_t offset,
                         const void* address, std::uint64_t bytes) noexcept {
    HF_ASSERT_SLOW(bytes > 0);
    HF_ASSERT_SLOW(fits(entry_bytes(bytes)));
    if (bytes > word_bytes) return add_long(kind, offset, address, bytes);
    std::uint64_t word = 0;
    if (bytes == word_bytes) std::memcpy(&word, address, word_bytes);
    else std::memcpy(&word, address, bytes);
    append(what_of(word_kind + static_cast<unsigned>(bytes), offset), word, word_entry_bytes);
}

void word_log::continue_in(block b) noexcept {
    HF_ASSERT_SLOW(b.bytes > 4 * word_entry_bytes);
    store(hf_words.next, what_of(record_kind::segment, b.offset));
    store(hf_words.next + word_bytes, b.bytes);
    hf_words.next += word_entry_bytes;
    count_entries();
    char* const begin = hf_words.base + b.offset;
    hf_words.next = room_ = begin;
    hf_words.limit = begin + b.bytes - word_entry_bytes - spare_;
    lane_writer::store_in_order(reinterpret_cast<std::byte*>(hf_words.logged),
                                b.offset); // upholds (1)
}

void read_word_log(pool_file& file, const heap& blocks, std::uint32_t lane, pending_section& found,
                   lane_damage& damage) {
    const lane_header& header = *lane_at(file, lane);
    const auto offset_of = [&](const void* at) {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - file.base());
    };
    found.lane = lane;
    found.begin = {header.committed + 1,
                   header.logged_function,
                   0,
                   static_cast<std::uint16_t>(header.logged_engine),
                   0,
                   0};
    found.in_words = true;
    found.announced = 0;
    found.args.clear();
    found.records.clear();
    const engine_row* const engine = engine_of(found.begin.engine);
    const bool again = engine != nullptr && runs_again(*engine);
    lane_position at = word_log_room(file, lane);
    std::uint64_t segments_bytes = 0;
    record_view entry;
    for (bool is_first = true; offset_of(at.next) != header.logged; is_first = false) {
        const std::byte* const here = at.next;
        const bool begins = again && is_first;
        if (!read_entry(at, again, entry) ||
            (begins ? !read_begin(entry, found) : entry.kind == record_kind::begin)) {
            std::uint64_t word = 0;
            if (at.limit - here >= static_cast<std::ptrdiff_t>(sizeof word))
                std::memcpy(&word, here, sizeof word);
            damage = {"an entry of the log that ends there", offset_of(here), header.logged, word};
            found.records.clear(); // they may be of sections that are over
            return;
        }
        if (!begins) found.records.push_back(entry);
        if (entry.kind != record_kind::segment) continue;
        segments_bytes += entry.bytes;
        found.sound = blocks.well_formed({entry.offset, entry.bytes}) &&
                      entry.bytes >= segment_bytes_min(file) && segments_bytes <= file.size_bytes();
        if (!found.sound) return;
        at.next = file.base() + entry.offset;
        at.limit = at.next + entry.bytes;
    }
    found.end = at;
}

} // namespace hf
