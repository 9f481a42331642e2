// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of lines that wait to be taken, each once, until no section runs.
#pragma once

#include <base/assert.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

namespace hf::power {

class pending_lines {
public:
    /// Makes room for so many, and forgets all. Throws std::bad_alloc.
    void resize(std::uint64_t lines_max) {
        HF_ASSERT(lines_max <= std::numeric_limits<index>::max());
        count_ = 0;
        lines_max_ = lines_max;
        lines_ = std::make_unique_for_overwrite<line[]>(lines_max);
        const std::uint64_t places = std::bit_ceil(2 * lines_max + 2);
        places_ = std::make_unique<index[]>(places);
        mask_ = places - 1;
    }
    bool empty() const noexcept { return count_ == 0; }
    std::uint64_t size() const noexcept { return count_; }
    /// Calls 'visit(number)' for each, in the order in which they came.
    template <class Visit> void for_each(Visit&& visit) const {
        for (const line& l : std::span(lines_.get(), count_)) visit(l.number);
    }
    /// Requires: it has room for another.
    void add(std::uint64_t number) noexcept {
        HF_ASSERT(count_ < lines_max_);
        // Lines that follow each other mostly come together: their places do, too. The next place
        // to look at is one of another group, so that two groups that meet soon part.
        constexpr std::uint64_t together = 8;
        std::uint64_t at = number / together * 0x9e3779b97f4a7c15ULL >> 32;
        at = at * together + number % together;
        for (index there; (there = places_[at & mask_]) != 0; at += together + 1)
            if (lines_[there - 1].number == number) return;
        lines_[count_] = {number, at & mask_};
        places_[at & mask_] = static_cast<index>(++count_);
    }
    void clear() noexcept {
        for (const line& l : std::span(lines_.get(), count_)) places_[l.place] = 0;
        count_ = 0;
    }

private:
    using index = std::uint16_t; // of a line in the list, plus one; 0: of none
    struct line {
        std::uint64_t number;
        std::uint64_t place;
    };

    std::uint64_t count_ = 0, lines_max_ = 0, mask_ = 0;
    std::unique_ptr<line[]> lines_;
    std::unique_ptr<index[]> places_;
};

} // namespace hf::power
