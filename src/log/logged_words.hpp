// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which bytes a section has already logged: a direct-mapped table of words, tagged with the
// section's epoch so that nothing is cleared between sections. Forgetting a word costs a second log
// entry, which restoring newest first makes harmless.
#pragma once

#include <base/assert.hpp>
#include <base/line.hpp>

#include <array>
#include <cstdint>

namespace hf {

class logged_words {
public:
    static constexpr std::uint64_t bytes_max = 64; // longer ranges are never remembered

    /// True when all bytes were logged in this epoch; otherwise remembers them.
    bool seen_or_add(std::uint64_t epoch, std::uint64_t offset, std::uint64_t bytes) noexcept {
        HF_ASSERT_SLOW(bytes > 0);
        if (bytes > bytes_max) return false;
        bool all = true;
        for (std::uint64_t word = offset / word_bytes; word <= (offset + bytes - 1) / word_bytes;
             ++word) {
            const std::uint8_t mask = byte_mask(word, offset, bytes);
            entry& e = entries_[word % entries_.size()];
            if (e.epoch == epoch && e.word == word && (e.mask & mask) == mask) continue;
            all = false;
            const bool same = e.epoch == epoch && e.word == word;
            e = {epoch, word, static_cast<std::uint8_t>(same ? e.mask | mask : mask)};
        }
        HF_ASSERT_SLOW(seen(epoch, offset, bytes)); // a range's words have a place each
        return all;
    }
    /// True when all bytes were logged in this epoch. Requires: at most bytes_max of them.
    bool seen(std::uint64_t epoch, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        HF_ASSERT_SLOW(bytes <= bytes_max);
        std::uint64_t word = offset / word_bytes;
        for (const std::uint64_t end = offset + bytes; word * word_bytes < end; ++word) {
            const std::uint8_t wanted = byte_mask(word, offset, bytes);
            const entry& e = entries_[word % entries_.size()];
            if (e.epoch != epoch || e.word != word || (e.mask & wanted) != wanted) return false;
        }
        return true;
    }

private:
    struct entry {
        std::uint64_t epoch;
        std::uint64_t word;
        std::uint8_t mask; // bytes of the word
    };
    static std::uint8_t byte_mask(std::uint64_t word, std::uint64_t offset,
                                  std::uint64_t bytes) noexcept {
        const std::uint64_t start = word * word_bytes;
        HF_ASSERT_SLOW(start < offset + bytes);
        HF_ASSERT_SLOW(offset < start + word_bytes);
        const std::uint64_t from = offset > start ? offset - start : 0;
        const std::uint64_t to =
            offset + bytes < start + word_bytes ? offset + bytes - start : word_bytes;
        return static_cast<std::uint8_t>((0xffu >> (word_bytes - (to - from))) << from);
    }
    std::array<entry, 64> entries_{};
};

/// The same for ranges too long for words: the last few.
class kept_ranges {
public:
    bool seen_or_add(std::uint64_t epoch, std::uint64_t offset, std::uint64_t bytes) noexcept {
        if (seen(epoch, offset, bytes)) return true;
        ranges_[next_++ % ranges_.size()] = {epoch, offset, bytes};
        latest_ = epoch;
        return false;
    }
    bool seen(std::uint64_t epoch, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        HF_ASSERT_SLOW(bytes > 0); // or what was never used would pass for seen
        if (latest_ != epoch) return false;
        for (const range& r : ranges_)
            if (r.epoch == epoch && offset >= r.offset && offset + bytes <= r.offset + r.bytes)
                return true;
        return false;
    }

private:
    struct range {
        std::uint64_t epoch, offset, bytes;
    };
    std::array<range, 8> ranges_{};
    std::size_t next_ = 0;
    std::uint64_t latest_ = 0; // epoch: most sections have no range here
};

/// Both.
class logged_ranges {
public:
    bool seen_or_add(std::uint64_t epoch, std::uint64_t offset, std::uint64_t bytes) noexcept {
        if (bytes > logged_words::bytes_max) return long_.seen_or_add(epoch, offset, bytes);
        return long_.seen(epoch, offset, bytes) || words_.seen_or_add(epoch, offset, bytes);
    }
    bool seen(std::uint64_t epoch, std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return long_.seen(epoch, offset, bytes) ||
               (bytes <= logged_words::bytes_max && words_.seen(epoch, offset, bytes));
    }

private:
    logged_words words_;
    kept_ranges long_;
};

} // namespace hf
