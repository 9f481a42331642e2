// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <power/batch.hpp>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hf::power {
namespace {

constexpr std::size_t line_words = line_bytes / word_bytes;

/// Word by word: other threads may be storing to the line.
void read_words(const std::byte* from, std::uint64_t (&to)[line_words]) noexcept {
    const auto* words = reinterpret_cast<const std::uint64_t*>(from);
    for (std::size_t w = 0; w < line_words; ++w)
        to[w] = __atomic_load_n(words + w, __ATOMIC_ACQUIRE);
}

/// The line as it was at one moment, as a line of memory keeps a prefix of its stores: read until two
/// readings in a row are the same.
void take_line(const std::byte* from, std::byte* to) noexcept {
    std::uint64_t now[line_words], before[line_words];
    read_words(from, now);
    do {
        std::memcpy(before, now, sizeof before);
        read_words(from, now);
    } while (std::memcmp(before, now, sizeof now) != 0);
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
    if (bytes_ == nullptr) throw std::bad_alloc();
}

void batch::start(std::uint64_t sequence) noexcept {
    HF_ASSERT_SLOW(sequence != 0);
    // The table forgets by the number's low half; once in 2^32 batches it must be told.
    if (sequence >> 32 != sequence_ >> 32)
        std::memset(places_.get(), 0, (places_mask_ + 1) * sizeof places_[0]);
    sequence_ = sequence;
    lines_ = 0;
}

std::uint64_t& batch::place_of(std::uint64_t line) noexcept {
    const std::uint64_t stamp = sequence_ << 32;
    for (std::uint64_t at = line * 0x9e3779b97f4a7c15ULL >> 20;; ++at) {
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
    take_line(from, bytes_.get() + sizeof(batch_head) + (index - 1) * line_bytes);
    return true;
}

std::span<const std::byte> batch::seal(std::uint64_t salt) noexcept {
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
    return {bytes, head.bytes};
}

} // namespace hf::power
