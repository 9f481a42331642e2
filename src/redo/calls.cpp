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

extern "C" {
constinit __thread std::uint64_t hf_redo_filter = 0;
}

namespace hf::redo {
namespace {

/// What waits in this thread's section, which is of this engine.
deferred_section& mine() { return current_section->as<deferred_section>(); }

constexpr std::uint64_t within(std::uint64_t offset) noexcept { return offset % granule_bytes; }

/// Calls 'visit(granule's offset, first byte in it, bytes)' for each granule of a range.
template <class Visit>
void for_each_granule(std::uint64_t offset, std::uint64_t bytes, Visit&& visit) {
    for (const std::uint64_t end = offset + bytes; offset < end;) {
        const std::uint64_t first = within(offset);
        const std::uint64_t here = std::min(granule_bytes - first, end - offset);
        visit(offset - first, first, here);
        offset += here;
    }
}

/// The line of the granule, and the one before it, where a load that is not aligned may begin.
void note_in_filter(const std::byte* granule) noexcept {
    const std::uint64_t line = reinterpret_cast<std::uintptr_t>(granule) / line_bytes;
    hf_redo_filter |= std::uint64_t{1} << line % 64;
    if (reinterpret_cast<std::uintptr_t>(granule) % line_bytes == 0)
        hf_redo_filter |= std::uint64_t{1} << (line - 1) % 64;
}

/// Whether the filter says that some of these bytes may wait: in the buffer, or because they were stored across
/// granules. Requires: there are some.
inline bool may_wait(const void* address, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t looked_at = 4 * line_bytes; // of more the filter knows little
    if (bytes > looked_at) return true;
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    for (auto line = first / line_bytes; line <= (first + bytes - 1) / line_bytes; ++line)
        if ((hf_redo_filter >> line % 64 & 1) != 0) return true;
    return false;
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

/// The compiler believes a pointer's type. Code that does not keep to it runs on this processor all the
/// same, and so it does here.
void* deferred_section::write_across(std::byte* address, std::uint64_t bytes) {
    straddling_.to = address;
    straddling_.bytes = bytes;
    note_in_filter(address - within(offset_of(address)));
    note_in_filter(address + bytes);
    return straddling_.stored;
}

/// 'in_blocks': it is known to be.
inline buffered_granule& deferred_section::granule_of(std::uint64_t offset, bool in_blocks) {
    buffered_granule& g = buffer_.at(offset);
    if (g.mask != 0) return g;
    // A damaged pointer must not lead to headers, lanes or the allocator's tables.
    if (!in_blocks && !in_.pool().blocks.durable().covers(offset, granule_bytes)) [[unlikely]]
        refuse(offset);
    note_in_filter(base_ + offset);
    return g;
}

void deferred_section::refuse(std::uint64_t offset) const noexcept {
    fatal("%s (%s) stores at offset %#llx, where no block is: the "
          "pointer leads into freed memory or none of the pool's, or the pool is damaged "
          "(holdfast verify)",
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
    const std::uint64_t first = within(offset);
    if (first + bytes > granule_bytes) [[unlikely]]
        return write_across(address, bytes);
    buffered_granule& g = granule_of(offset - first);
    g.mask |= mask_of(first, bytes);
    return g.bytes + first;
}

/// 'source(to, at, bytes)' stores the bytes that begin 'at' bytes behind the first.
template <class Source>
void deferred_section::put(std::byte* to, std::uint64_t bytes, Source&& source) {
    if (bytes == 0) return; // of any pointer
    settle();
    const std::uint64_t offset = defer(to, bytes);
    if (offset == section::outside) return source(to, 0, bytes);
    const std::uint64_t first_granule = offset - within(offset);
    const bool in_blocks = in_.pool().blocks.durable().covers(
        first_granule, round_up(offset + bytes, granule_bytes) - first_granule);
    for_each_granule(offset, bytes, [&](std::uint64_t at, std::uint64_t first, std::uint64_t here) {
        buffered_granule& g = granule_of(at, in_blocks);
        source(g.bytes + first, at + first - offset, here);
        g.mask |= mask_of(first, here);
    });
}

/// Whether any of these bytes has been stored.
bool deferred_section::waits_in(std::uint64_t offset, std::uint64_t bytes) noexcept {
    if (bytes / granule_bytes > buffer_.size()) {
        for (std::size_t i = 0; i < buffer_.size(); ++i)
            if (buffer_[i].offset < offset + bytes && offset < buffer_[i].offset + granule_bytes)
                return true;
        return false;
    }
    bool any = false;
    for_each_granule(offset, bytes, [&](std::uint64_t at, std::uint64_t first, std::uint64_t here) {
        const buffered_granule* g = buffer_.find(at);
        any = any || (g != nullptr && (g->mask & mask_of(first, here)) != 0);
    });
    return any;
}

/// Puts those bytes of a range that have been stored over a copy of what is in place.
void deferred_section::merge(std::byte* into, std::uint64_t offset, std::uint64_t bytes) noexcept {
    for_each_granule(offset, bytes, [&](std::uint64_t at, std::uint64_t first, std::uint64_t here) {
        const buffered_granule* g = buffer_.find(at);
        if (g == nullptr) return;
        for (std::uint64_t i = first; i < first + here; ++i)
            if ((g->mask >> i & 1) != 0) into[at + i - offset] = g->bytes[i];
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
    if (const std::uint64_t first = within(offset); first + bytes <= granule_bytes) {
        const buffered_granule* g = buffer_.find(offset - first);
        if (g == nullptr || (g->mask & mask_of(first, bytes)) == 0) return address;
        if ((g->mask & mask_of(first, bytes)) == mask_of(first, bytes)) return g->bytes + first;
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

namespace {

/// Ends the section. False: its log found no room, and it has not happened.
bool commit_mine() noexcept {
    const auto why = without_exceptions("hf_redo_commit", [] {
        return with_protocol<redo_protocol>([](auto& p) { return p.commit(); });
    });
    leave_section();
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
    return hf::without_exceptions("hf_redo_begin", [&] {
        // Recovery needs neither function nor arguments; they are named for reports only.
        const bool begun = hf::begin_section<hf::redo::redo_protocol>(*function, packed_args);
        // A function that joins a section reads in place before its own first store.
        HF_ASSERT(begun || mine().is_empty());
        return int{begun};
    });
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
    hf::leave_section();
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
                       if (count == hf::granule_bytes)
                           std::memmove(part, bytes_at(from) + at, hf::granule_bytes);
                       else std::memmove(part, bytes_at(from) + at, count);
                   });
    });
}

void hf_redo_copy(void* to, const void* from, std::uint64_t bytes) noexcept {
    const void* source = hf_redo_read(from, bytes);
    std::byte together[hf::granule_bytes];
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
    if (hf_redo_filter == 0) return address; // nothing has been stored yet: as in most of a search
    // Most words have asked the filter before they came.
    if (bytes > hf::word_bytes && !hf::redo::may_wait(address, bytes)) return address;
    return hf::without_exceptions("hf_redo_read",
                                  [&] { return mine().read(bytes_at(address), bytes); });
}

const void* hf_redo_read_string(const void* address) noexcept {
    return hf::without_exceptions("hf_redo_read_string",
                                  [&] { return mine().read_string(bytes_at(address)); });
}

} // extern "C"
