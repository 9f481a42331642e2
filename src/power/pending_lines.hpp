// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of lines that wait to be taken, each once, until no section runs.
#pragma once

#include <base/assert.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace hf::power {

class pending_lines {
public:
    /// Makes room for so many, and forgets all. Throws std::bad_alloc.
    void resize(std::uint64_t lines_max) {
        HF_ASSERT(lines_max <= std::numeric_limits<index>::max());
        lines_.clear();
        lines_.reserve(lines_max);
        places_.assign(std::bit_ceil(2 * lines_max + 2), 0);
    }
    bool empty() const noexcept { return lines_.empty(); }
    std::uint64_t size() const noexcept { return lines_.size(); }
    const std::vector<std::uint64_t>& lines() const noexcept { return lines_; }
    /// Requires: it has room for another.
    void add(std::uint64_t line) noexcept {
        HF_ASSERT(lines_.size() < lines_.capacity());
        index& place = place_of(line);
        if (place != 0) return;
        lines_.push_back(line);
        place = static_cast<index>(lines_.size());
    }
    void clear() noexcept {
        for (std::uint64_t line : lines_) {
            std::uint64_t at = first_place(line);
            while (places_[at] != 0) { // what stands behind it goes as well: all go
                places_[at] = 0;
                at = (at + 1) & (places_.size() - 1);
            }
        }
        lines_.clear();
    }

private:
    using index = std::uint16_t; // of a line in the list, plus one; 0: of none
    // Lines that follow each other mostly come together: their places do, too.
    std::uint64_t first_place(std::uint64_t line) const noexcept {
        constexpr std::uint64_t together = 8;
        const std::uint64_t group = line / together * 0x9e3779b97f4a7c15ULL >> 32;
        return (group * together + line % together) & (places_.size() - 1);
    }
    index& place_of(std::uint64_t line) noexcept {
        std::uint64_t at = first_place(line);
        while (places_[at] != 0 && lines_[places_[at] - 1] != line)
            at = (at + 1) & (places_.size() - 1);
        return places_[at];
    }

    std::vector<std::uint64_t> lines_; // in the order in which they came
    std::vector<index> places_;
};

} // namespace hf::power
