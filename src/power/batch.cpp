// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <power/batch.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace hf::power {
namespace {

constexpr std::uint64_t places_min = 256;
static_assert(sizeof(batch_head) % line_bytes == 0); // so a line of a batch is in one block

// Loaded in parts, or word by word: ThreadSanitizer knows only such loads to be meant.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HF_WORD_BY_WORD
#endif
#endif
#if defined(__SSE2__) && !defined(HF_WORD_BY_WORD)
using part = std::uint64_t __attribute__((vector_size(16), may_alias));
part load(const part* from) noexcept { return *const_cast<const volatile part*>(from); }
#else
using part = std::uint64_t;
part load(const part* from) noexcept { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
#endif
[[maybe_unused]] bool is_zero(std::uint64_t word) noexcept { return word == 0; }
template <class Part> bool is_zero(const Part& words) noexcept {
    return (words[0] | words[1]) == 0;
}

/// The line as it was at one moment, as a line of memory keeps a prefix of its stores: read until
/// two readings in a row are the same. Other threads may be storing to the line.
void take_line(const std::byte* from, std::byte* to) noexcept {
    constexpr std::size_t count = line_bytes / sizeof(part);
    const auto* const parts = reinterpret_cast<const part*>(from);
    part now[count];
    for (std::size_t p = 0; p < count; ++p) now[p] = load(parts + p);
    for (part changed = now[0] | ~now[0]; !is_zero(changed);) {
        changed = now[0] ^ now[0];
        for (std::size_t p = 0; p < count; ++p) {
            const part again = load(parts + p);
            changed |= again ^ now[p];
            now[p] = again;
        }
    }
    std::memcpy(to, now, sizeof now);
}

} // namespace

void batch::free_bytes::operator()(std::byte* bytes) const noexcept { std::free(bytes); }

batch::batch(std::uint64_t bytes_max)
    : lines_max_(std::min<std::uint64_t>(lines_in(bytes_max), std::numeric_limits<index>::max())),
      bytes_(static_cast<std::byte*>(std::aligned_alloc(block_bytes, bytes_max))),
      numbers_(std::make_unique<std::uint64_t[]>(lines_max_)),
      places_(std::make_unique<index[]>(std::max(std::bit_ceil(2 * lines_max_), places_min))) {
    HF_ASSERT(bytes_max % block_bytes == 0);
    stale_.resize(bytes_max / block_bytes);
    if (bytes_ == nullptr) throw std::bad_alloc();
    resize_places(places_min);
}

void batch::start(std::uint64_t sequence) noexcept {
    HF_ASSERT_SLOW(sequence != 0);
    sequence_ = sequence;
    early_end_ = 0;
    const std::uint64_t places = places_mask_ + 1;
    const bool far_larger = places > places_min && lines_ < places / 8;
    lines_ = 0;
    resize_places(far_larger ? places / 2 : places);
}

/// The index place of the line, or the free place for it.
std::uint64_t batch::place_of(std::uint64_t line) const noexcept {
    // Lines that follow each other mostly come together: their places do, too. So that those of two
    // groups that meet do not all have to pass each other, the next place to look at is one of
    // another group.
    constexpr std::uint64_t together = 8;
    std::uint64_t at = line / together * 0x9e3779b97f4a7c15ULL >> 32;
    for (at = at * together + line % together;; at += together + 1) {
        const index there = places_[at & places_mask_];
        if (there == 0 || numbers_[there - 1] == line) return at & places_mask_;
    }
}

/// Notes the lines that are in the batch anew, in a table of so many places.
void batch::resize_places(std::uint64_t count) noexcept {
    places_mask_ = count - 1;
    std::memset(places_.get(), 0, count * sizeof places_[0]);
    for (std::uint64_t i = 0; i < lines_; ++i)
        places_[place_of(numbers_[i])] = static_cast<index>(i + 1);
}

bool batch::take(std::uint64_t line, const std::byte* from) noexcept {
    HF_ASSERT_SLOW(sequence_ != 0);
    std::uint64_t place = place_of(line);
    if (places_[place] == 0) {
        if (lines_ == lines_max_) return false;
        if (lines_ == (places_mask_ + 1) / 2) {
            resize_places(2 * (places_mask_ + 1));
            place = place_of(line);
        }
        numbers_[lines_] = line;
        places_[place] = static_cast<index>(++lines_);
    }
    const std::uint64_t at = sizeof(batch_head) + (places_[place] - 1) * line_bytes;
    if (at < early_end_) stale_[at / block_bytes] = true;
    take_line(from, bytes_.get() + at);
    return true;
}

batch::part batch::early(std::uint64_t bytes_min) noexcept {
    const std::uint64_t from = std::max(early_end_, block_bytes);
    const std::uint64_t end = round_down(sizeof(batch_head) + lines_ * line_bytes, block_bytes);
    if (end < from + bytes_min) return {from, {}};
    for (std::uint64_t at = from; at < end; at += block_bytes) stale_[at / block_bytes] = false;
    early_end_ = end;
    return {from, {bytes_.get() + from, end - from}};
}

batch::part batch::to_write(std::uint64_t from) const noexcept {
    const auto written = [&](std::uint64_t at) {
        return at >= block_bytes && at < early_end_ && !stale_[at / block_bytes];
    };
    const std::uint64_t all = bytes();
    while (from < all && written(from)) from += block_bytes;
    std::uint64_t end = from;
    while (end < all && !written(end)) end += block_bytes;
    return {from, {bytes_.get() + from, end - from}};
}

void batch::seal(std::uint64_t salt) noexcept {
    HF_ASSERT(lines_ != 0);
    std::byte* const bytes = bytes_.get();
    batch_head head{0, batch_magic, salt, sequence_, batch_bytes(lines_), lines_, {}};
    std::byte* const numbers = bytes + sizeof head + lines_ * line_bytes;
    std::byte* const end = numbers + lines_ * sizeof(std::uint64_t);
    std::memcpy(numbers, numbers_.get(), lines_ * sizeof(std::uint64_t));
    std::memset(end, 0, static_cast<std::size_t>(bytes + head.bytes - end));
    std::memcpy(bytes, &head, sizeof head);
    head.checksum = batch_checksum(bytes, head);
    std::memcpy(bytes, &head.checksum, sizeof head.checksum);
}

} // namespace hf::power
