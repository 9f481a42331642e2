// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section asks of engines whose stores wait for the commit (section.hpp, 8).
#include <base/assert.hpp>
#include <section/section.hpp>

#include <cstring>

namespace hf {
namespace {
// Of so much memory of a section's own its log has sums. More of it gets a fence of its own.
constexpr std::uint64_t summed_bytes_max = 64 << 10;
} // namespace

std::uint64_t section::defer(const void* address, std::uint64_t bytes) {
    const std::uint64_t offset = checked_offset(address, bytes);
    if (offset == outside || bytes == 0) return outside;
    if (!fresh(offset)) {
        refilled_ = refilled_ || in_filled(offset, bytes);
        return offset;
    }
    will_store(address, bytes);
    return outside;
}

/// A block of the section's own, freed by it.
void section::drop(block own, std::vector<block>& to) {
    if (engine_->sections == engine_sections::buffered) // section.hpp, 8
        append(record_kind::unused, own.offset, own.bytes);
    to.push_back(own);
}

void section::log_own_memory() {
    sums_logged_ = !medium_.keeps_order() && !filled_.empty();
    if (medium_.keeps_order()) return;
    std::uint64_t bytes = 0;
    for (block b : allocs_) {
        // Whole: what the section has not stored there may wait in a cache as well.
        if (medium_.loses_caches()) dirty_.add(base_ + b.offset, b.bytes);
        bytes += b.bytes;
    }
    if (bytes > summed_bytes_max || refilled_) {
        dirty_.flush_all(medium_);
        fence();
        append(record_kind::applying, 0, 0);
        sums_logged_ = false;
        return;
    }
    for (block b : allocs_) {
        const filled_payload sum{b.bytes, XXH3_64bits(base_ + b.offset, b.bytes)};
        append(record_kind::filled, b.offset, sizeof sum, &sum);
        sums_logged_ = true;
    }
}

void section::log_new_bytes(const void* stores, std::uint64_t bytes, bool last) {
    if (doomed_ != doomed_by::nothing)
        return; // a record that found no room: the log is never whole
    // With room for the applying record behind it, which nothing may come before.
    if (last && !log_.fits(bytes + sizeof(record_head)) && !extend(bytes + sizeof(record_head)))
        return;
    append(record_kind::new_bytes, last, bytes, stores);
}

void section::make_log_durable() {
    dirty_.flush_all(medium_);
    fence();
    // Durable by the commit's next fence: until then the memory that has sums stays as it is.
    if (sums_logged_) log_.append(record_kind::applying, 0, 0, nullptr, 0);
}

void section::store_deferred(deferred_store where, const std::byte* granule) {
    std::byte* const to = base_ + where.offset();
    for (std::uint64_t w = 0; w < granule_bytes; w += word_bytes) {
        const unsigned bytes = where.mask() >> w & 0xff;
        if (bytes == 0xff) {
            std::uint64_t word = 0;
            std::memcpy(&word, granule + w, sizeof word);
            will_store(to + w, word_bytes);
            std::atomic_ref(*reinterpret_cast<std::uint64_t*>(to + w))
                .store(word, std::memory_order_relaxed);
            continue;
        }
        for (std::uint64_t i = 0; i < word_bytes; ++i) {
            if ((bytes >> i & 1) == 0) continue;
            will_store(to + w + i, 1);
            to[w + i] = granule[w + i];
        }
    }
}

} // namespace hf
