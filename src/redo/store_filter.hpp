// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section may have stored to: a bit for each granule of memory. Compiled loads look at it
// before they ask the buffer (holdfast_abi.h, hf_redo_filter).
//
// (1) The bit of a granule is set where a load of at most 16 bytes that begins in it may meet bytes
//     that wait: for bytes in that granule, and in the next one, since loads need no alignment.
// (2) Granules share bits: two that are 512 KiB apart have the same one.
#pragma once

#include <alloc/heap.hpp>
#include <base/line.hpp>

#include <holdfast/abi/holdfast_abi.h>

#include <algorithm>
#include <cstdint>

namespace hf::redo {

class store_filter {
public:
    const std::uint64_t* words() const noexcept { return words_; }

    /// Bytes wait from here on. Requires: there are some.
    void note(const std::byte* address, std::uint64_t bytes) noexcept {
        const auto first = reinterpret_cast<std::uintptr_t>(address);
        // From the granule before on: upholds (1).
        for_each_word(first - granule_bytes, first + bytes - 1,
                      [&](std::uint64_t word, std::uint64_t bits) {
                          words_[word] |= bits;
                          return true;
                      });
    }
    /// The same of bytes of one granule, which begins at 'granule'.
    void note_granule(const std::byte* granule) noexcept {
        const auto at = reinterpret_cast<std::uintptr_t>(granule);
        for (const std::uintptr_t each : {at - granule_bytes, at}) // upholds (1)
            words_[word_of(each)] |= std::uint64_t{1} << each / granule_bytes % word_granules;
    }
    /// Takes the bits back that note() has set for bytes of a line; and bits that stand beside
    /// them.
    void forget_line(const std::byte* line) noexcept {
        const auto first = reinterpret_cast<std::uintptr_t>(line);
        words_[word_of(first - granule_bytes)] = 0;
        words_[word_of(first)] = 0;
    }
    void forget_all() noexcept { std::ranges::fill(words_, 0); }

    /// Whether some of the bytes may wait, by the words of a filter.
    static bool may_wait(const std::uint64_t* words, const void* address,
                         std::uint64_t bytes) noexcept {
        if (bytes == 0) return false;
        const auto first = reinterpret_cast<std::uintptr_t>(address);
        return !for_each_word(
            first, first + bytes - 1,
            [&](std::uint64_t word, std::uint64_t bits) { return (words[word] & bits) == 0; });
    }

    static constexpr std::size_t word_count = HF_REDO_FILTER_WORDS;

private:
    static constexpr std::uint64_t word_granules = 64;

    static std::uint64_t word_of(std::uintptr_t address) noexcept {
        return address / (granule_bytes * word_granules) % word_count;
    }
    /// Calls 'visit(word, bits)' for the granules from that of 'first' to that of 'last', until it
    /// returns false. Returns whether all were visited.
    template <class Visit>
    static bool for_each_word(std::uintptr_t first, std::uintptr_t last, Visit&& visit) noexcept {
        const std::uint64_t end = last / granule_bytes + 1;
        for (std::uint64_t g = first / granule_bytes, next; g < end; g = next) {
            next = std::min(end, (g / word_granules + 1) * word_granules);
            const std::uint64_t bits = ~std::uint64_t{0} >> (word_granules - (next - g))
                                                                << g % word_granules;
            if (!visit(g / word_granules % word_count, bits)) return false;
        }
        return true;
    }

    alignas(line_bytes) std::uint64_t words_[word_count] = {};
};
static_assert(granule_bytes == 16 &&
              (store_filter::word_count & (store_filter::word_count - 1)) == 0);

} // namespace hf::redo
