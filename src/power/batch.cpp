// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <power/batch.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hf::power {
namespace {

constexpr std::size_t line_words = line_bytes / word_bytes;
static_assert(sizeof(batch_head) % line_bytes == 0); // so a line of a batch is in one block

/// The line as it was at one moment, as a line of memory keeps a prefix of its stores: read until two
/// readings in a row are the same. Word by word: other threads may be storing to the line.
void take_line(const std::byte* from, std::byte* to) noexcept {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(from);
    std::uint64_t now[line_words];
    for (std::size_t w = 0; w < line_words; ++w)
        now[w] = __atomic_load_n(words + w, __ATOMIC_ACQUIRE);
    for (std::uint64_t changed = 1; changed != 0;) {
        changed = 0;
        for (std::size_t w = 0; w < line_words; ++w) {
            const std::uint64_t again = __atomic_load_n(words + w, __ATOMIC_ACQUIRE);
            changed |= again ^ now[w];
            now[w] = again;
        }
    }
    std::memcpy(to, now, sizeof now);
}

} // namespace

void batch::free_bytes::operator()(std::byte* bytes) const noexcept { std::free(bytes); }

batch::batch(std::uint64_t bytes_max)
    : lines_max_(lines_in(bytes_max)),
      bytes_(static_cast<std::byte*>(std::aligned_alloc(block_bytes, bytes_max))),
      numbers_(std::make_unique<std::uint64_t[]>(lines_max_)),
      places_(std::make_unique<std::uint64_t[]>(std::bit_ceil(2 * lines_max_))),
      places_mask_(std::bit_ceil(2 * lines_max_) - 1) {
    HF_ASSERT(bytes_max % block_bytes == 0);
    stale_.resize(bytes_max / block_bytes);
    if (bytes_ == nullptr) throw std::bad_alloc();
}

void batch::start(std::uint64_t sequence) noexcept {
    HF_ASSERT_SLOW(sequence != 0);
    // The table forgets by the number's low half; once in 2^32 batches it must be told.
    if (sequence >> 32 != sequence_ >> 32)
        std::memset(places_.get(), 0, (places_mask_ + 1) * sizeof places_[0]);
    sequence_ = sequence;
    lines_ = 0;
    early_end_ = 0;
}

std::uint64_t& batch::place_of(std::uint64_t line) noexcept {
    const std::uint64_t stamp = sequence_ << 32;
    // Lines that follow each other mostly come together: their places share a line of the table.
    constexpr std::uint64_t together = line_bytes / sizeof(std::uint64_t);
    std::uint64_t at = (line / together * 0x9e3779b97f4a7c15ULL >> 20) * together + line % together;
    for (;; ++at) {
        std::uint64_t& place = places_[at & places_mask_];
        const auto index = static_cast<std::uint32_t>(place);
        if (index == 0 || (place ^ stamp) >> 32 != 0) return place = stamp;
        if (numbers_[index - 1] == line) return place;
    }
}

bool batch::take(std::uint64_t line, const std::byte* from) noexcept {
    HF_ASSERT_SLOW(sequence_ != 0);
    std::uint64_t& place = place_of(line);
    auto index = static_cast<std::uint32_t>(place);
    if (index == 0) {
        if (lines_ == lines_max_) return false;
        numbers_[lines_] = line;
        index = static_cast<std::uint32_t>(++lines_);
        place |= index;
    }
    const std::uint64_t at = sizeof(batch_head) + (index - 1) * line_bytes;
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
