// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the compiler puts in place of a section's accesses (holdfast_abi.h), and the commit.
#include <base/assert.hpp>
#include <base/line.hpp>
#include <base/names.hpp>
#include <redo/protocol.hpp>
#include <section/thread.hpp>

#include <holdfast/abi/holdfast_abi.h>
#include <holdfast/redo.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace hf::redo {
namespace {
/// The filter of a thread that is in no section.
constinit const std::uint64_t nothing_stored[store_filter::word_count] = {};
} // namespace
} // namespace hf::redo

extern "C" {
constinit __thread const std::uint64_t* hf_redo_filter = hf::redo::nothing_stored;
}

namespace hf::redo {
namespace {

/// The stores that wait in this thread's section. Requires: it is of this engine.
deferred_section& mine() { return current_section->as<deferred_section>(); }

constexpr std::uint64_t within(std::uint64_t offset) noexcept { return offset % line_bytes; }

/// Calls 'visit(line's offset, first byte in it, bytes)' for each line of a range.
template <class Visit>
void for_each_line(std::uint64_t offset, std::uint64_t bytes, Visit&& visit) {
    for (const std::uint64_t end = offset + bytes; offset < end;) {
        const std::uint64_t first = within(offset);
        const std::uint64_t here = std::min(line_bytes - first, end - offset);
        visit(offset - first, first, here);
        offset += here;
    }
}

} // namespace

/// Puts what was stored across granules where it belongs.
void deferred_section::settle() {
    if (straddling_.to == nullptr) [[likely]]
        return;
    std::byte* const to = std::exchange(straddling_.to, nullptr);
    put(to, straddling_.bytes, [&](std::byte* part, std::uint64_t at, std::uint64_t count) {
        std::memcpy(part, straddling_.stored + at, count);
    });
}

/// The compiler believes a pointer's type. Code that does not keep to it runs on this processor all
/// the same, and so it does here.
void* deferred_section::write_across(std::byte* address, std::uint64_t bytes) {
    const std::uint64_t offset = offset_of(address);
    line_of(offset); // each is there from now on, and in the filter
    line_of(offset + bytes - 1);
    straddling_.to = address;
    straddling_.bytes = bytes;
    return straddling_.stored;
}

/// The line of a byte that is about to be stored, whose granule is in the filter.
inline buffered_line deferred_section::line_of(std::uint64_t offset) {
    const buffered_line line = buffer_.at(offset - within(offset));
    const std::uint64_t granule = within(round_down(offset, granule_bytes));
    if (static_cast<std::uint16_t>(line.is->mask >> granule) == 0) begin_granule(*line.is, granule);
    return line;
}

/// Nothing of the line's granule has been stored yet.
void deferred_section::begin_granule(const buffered_line::head& line, std::uint64_t granule) {
    if (line.mask == 0) check_in_blocks(line.offset, line_bytes);
    filter_.note_granule(base_ + line.offset + granule);
}

/// A damaged pointer must not lead to headers, lanes or the allocator's tables. Blocks are in
/// chunks, which are whole lines.
void deferred_section::check_in_blocks(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    if (!in_.pool().blocks.durable().covers(offset, bytes)) [[unlikely]]
        refuse(offset);
}

void deferred_section::refuse(std::uint64_t offset) const noexcept {
    fatal("%s (%s) stores at offset %#llx, where no block is: the pointer leads into freed memory "
          "or past a block, or the pool is damaged (`holdfast verify`)",
          readable_name(in_.function()->name), in_.function()->where,
          static_cast<unsigned long long>(offset));
}

inline std::uint64_t deferred_section::defer(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = in_.checked_offset(address, bytes);
    if (offset == section::outside || bytes == 0) return section::outside;
    if (in_.fresh(offset)) {
        in_.store_to_own(address, bytes);
        return section::outside;
    }
    refilled_ = refilled_ || in_.prepared().in_filled(offset, bytes);
    return offset;
}

void deferred_section::overwrite(const void* address, std::uint64_t bytes) {
    HF_ASSERT(defer(address, bytes) == section::outside); // the compiler gives it no other
}

void* deferred_section::alloc(std::uint64_t bytes) {
    block b = in_.reserve(bytes);
    if (b.offset == 0 && in_.marks().holds_blocks()) {
        in_.settle_mark();
        b = in_.reserve(bytes);
    }
    return b.offset == 0 ? nullptr : in_.take(b);
}

void* deferred_section::write(std::byte* address, std::uint64_t bytes) {
    settle();
    const std::uint64_t offset = defer(address, bytes);
    if (offset == section::outside) return address;
    if (offset % granule_bytes + bytes > granule_bytes) [[unlikely]]
        return write_across(address, bytes);
    const buffered_line line = line_of(offset);
    line.is->mask |= mask_of(within(offset), bytes);
    return line.bytes + within(offset);
}

/// 'source(to, at, bytes)' stores the bytes that begin 'at' bytes behind the first.
template <class Source>
void deferred_section::put(std::byte* to, std::uint64_t bytes, Source&& source) {
    if (bytes == 0) return; // of any pointer
    settle();
    const std::uint64_t offset = defer(to, bytes);
    if (offset == section::outside) return source(to, 0, bytes);
    check_in_blocks(offset, bytes);
    const bool new_here = !store_filter::may_wait(filter_.words(), to, bytes);
    filter_.note(to, bytes);
    for (std::uint64_t at = offset; at < offset + bytes;) {
        const std::uint64_t first = within(at), left = offset + bytes - at;
        if (new_here && first == 0 && left >= line_bytes) {
            const auto made = buffer_.add_whole(at, left / line_bytes);
            source(made.bytes, at - offset, made.lines * line_bytes);
            at += made.lines * line_bytes;
            continue;
        }
        const std::uint64_t here = std::min(line_bytes - first, left);
        const buffered_line line = buffer_.at(at - first);
        source(line.bytes + first, at - offset, here);
        line.is->mask |= mask_of(first, here);
        at += here;
    }
}

/// Whether any of these bytes has been stored.
bool deferred_section::waits_in(std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (bytes / line_bytes > buffer_.size()) {
        for (std::size_t i = 0; i < buffer_.size(); ++i)
            if (const std::uint64_t at = buffer_[i].is->offset;
                at < offset + bytes && offset < at + line_bytes)
                return true;
        return false;
    }
    bool any = false;
    for_each_line(offset, bytes, [&](std::uint64_t at, std::uint64_t first, std::uint64_t here) {
        const buffered_line line = buffer_.find(at);
        any = any || (line.is != nullptr && (line.is->mask & mask_of(first, here)) != 0);
    });
    return any;
}

/// Puts those bytes of a range that have been stored over a copy of what is in place.
void deferred_section::merge(std::byte* into, std::uint64_t offset, std::uint64_t bytes) noexcept {
    for_each_line(offset, bytes, [&](std::uint64_t at, std::uint64_t first, std::uint64_t here) {
        const buffered_line line = buffer_.find(at);
        if (line.is == nullptr) return;
        std::byte* const to = into + (at + first - offset);
        if ((line.is->mask & mask_of(first, here)) == mask_of(first, here)) {
            std::memcpy(to, line.bytes + first, here);
            return;
        }
        for (std::uint64_t i = 0; i < here; ++i)
            if ((line.is->mask >> (first + i) & 1) != 0) to[i] = line.bytes[first + i];
    });
}

std::vector<std::byte>& deferred_section::next_copy(std::uint64_t bytes) {
    std::vector<std::byte>& copy = copies_[copies_made_++ % std::size(copies_)];
    copy.resize(bytes);
    return copy;
}

const std::byte* deferred_section::read(const std::byte* address, std::uint64_t bytes) {
    settle();
    if (buffer_.empty()) return address;
    const std::uint64_t offset = offset_of(address);
    if (!in_pool(offset) || bytes == 0) return address;
    if (const std::uint64_t first = within(offset); first + bytes <= line_bytes) {
        const buffered_line line = buffer_.find(offset - first);
        if (line.is == nullptr || (line.is->mask & mask_of(first, bytes)) == 0) return address;
        if ((line.is->mask & mask_of(first, bytes)) == mask_of(first, bytes))
            return line.bytes + first;
    } else if (!waits_in(offset, bytes)) {
        return address;
    }
    std::vector<std::byte>& copy = next_copy(bytes);
    std::memcpy(copy.data(), address, bytes);
    merge(copy.data(), offset, bytes);
    return copy.data();
}

const std::byte* deferred_section::read_string(const std::byte* address) {
    settle();
    if (buffer_.empty() || !in_pool(offset_of(address))) return address;
    std::uint64_t length = 0;
    while (*read(address + length, 1) != std::byte{0}) ++length;
    return read(address, length + 1);
}

std::byte deferred_section::seen(const std::byte* address) noexcept {
    const auto at = static_cast<std::uint64_t>(address - straddling_.to);
    if (straddling_.to != nullptr && at < straddling_.bytes) return straddling_.stored[at];
    std::byte found = *address;
    if (in_pool(offset_of(address))) merge(&found, offset_of(address), 1);
    return found;
}

bool begin(const hf_txfunc& function, const void* packed_args) {
    // Recovery needs neither function nor arguments; they are named for reports only.
    const bool begun = begin_section<redo_protocol>(function, packed_args);
    // A function that joins a section reads in place before its own first store.
    HF_ASSERT(begun || mine().is_empty());
    return begun;
}

namespace {

/// Loads look at nothing any more.
void leave() noexcept {
    hf_redo_filter = nothing_stored;
    leave_section();
}

/// Ends the section. False: its log found no room, and it has not happened.
bool commit_mine() noexcept {
    const auto why = without_exceptions("hf_redo_commit", [] {
        return with_protocol<redo_protocol>([](auto& p) { return p.commit(); });
    });
    leave();
    return why != deferred_section::doomed_by::no_room;
}

const std::byte* bytes_at(const void* address) { return static_cast<const std::byte*>(address); }
std::byte* bytes_at(void* address) { return static_cast<std::byte*>(address); }

// Where there are sections there is their engine (open/program_engines.cpp).
[[gnu::used]] constexpr engine_ptr (*linked)() noexcept = &engine;

} // namespace
} // namespace hf::redo

using hf::redo::bytes_at;
using hf::redo::mine;

extern "C" {

int hf_redo_begin(const hf_txfunc* function, const void* packed_args) noexcept {
    return hf::without_exceptions("hf_redo_begin",
                                  [&] { return int{hf::redo::begin(*function, packed_args)}; });
}

void hf_redo_commit(void) noexcept {
    const hf::section& ended = *hf::current_section;
    if (!hf::redo::commit_mine())
        hf::without_exceptions("hf_redo_commit", [&] {
            ended.no_room_for_log("nothing of the section has happened");
        });
}

void hf_redo_commit_or_throw(void) {
    if (!hf::redo::commit_mine()) throw std::bad_alloc();
}

void hf_redo_abort(void) noexcept {
    hf::without_exceptions("hf_redo_abort", [] {
        hf::with_protocol<hf::redo::redo_protocol>([](auto& p) { p.abort(); });
    });
    hf::redo::leave();
}

void hf_redo_note(const void* address, std::uint64_t bytes) noexcept {
    hf::note_store<hf::redo::redo_protocol>("hf_redo_note", address, bytes);
}

void* hf_redo_write(void* address, std::uint64_t bytes) noexcept {
    return hf::without_exceptions("hf_redo_write",
                                  [&] { return mine().write(bytes_at(address), bytes); });
}

void hf_redo_put(void* to, const void* from, std::uint64_t bytes) noexcept {
    hf::without_exceptions("hf_redo_put", [&] {
        mine().put(bytes_at(to), bytes,
                   [&](std::byte* part, std::uint64_t at, std::uint64_t count) {
                       std::memmove(part, bytes_at(from) + at, count);
                   });
    });
}

void hf_redo_copy(void* to, const void* from, std::uint64_t bytes) noexcept {
    const void* source = hf_redo_read(from, bytes);
    std::byte together[hf::line_bytes];
    if (bytes <= sizeof together) { // it may be in the buffer, where it is about to change
        std::memcpy(together, source, bytes);
        source = together;
    }
    hf_redo_put(to, source, bytes);
}

void hf_redo_fill(void* to, int byte, std::uint64_t bytes) noexcept {
    hf::without_exceptions("hf_redo_fill", [&] {
        mine().put(bytes_at(to), bytes, [&](std::byte* part, std::uint64_t, std::uint64_t count) {
            std::memset(part, byte, count);
        });
    });
}

const void* hf_redo_read(const void* address, std::uint64_t bytes) noexcept {
    // Most loads of so few bytes have asked the filter before they came.
    if (bytes > hf::granule_bytes &&
        !hf::redo::store_filter::may_wait(hf_redo_filter, address, bytes))
        return address;
    return hf::without_exceptions("hf_redo_read",
                                  [&] { return mine().read(bytes_at(address), bytes); });
}

// For debuggers (tools/gdb/holdfast.py), in any thread: outside of sections it is the byte itself.
[[gnu::used]] unsigned hf_redo_seen(const void* address) noexcept {
    if (hf_redo_filter == hf::redo::nothing_stored)
        return static_cast<unsigned>(*static_cast<const std::byte*>(address));
    return static_cast<unsigned>(mine().seen(static_cast<const std::byte*>(address)));
}

const void* hf_redo_read_string(const void* address) noexcept {
    return hf::without_exceptions("hf_redo_read_string",
                                  [&] { return mine().read_string(bytes_at(address)); });
}

} // extern "C"
