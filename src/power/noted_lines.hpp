// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread has flushed since its last fence: ranges of lines, of one log.
#pragma once

#include <base/line.hpp>
#include <power/log.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hf::power {

struct log::noted_lines {
    static constexpr std::size_t ranges_max = 128;
    struct range {
        std::uintptr_t first, end;
    };
    std::uint64_t instance = 0; // of the log
    std::size_t count = 0;
    range ranges[ranges_max];
    std::vector<range> more; // of a section that runs, before those
    bool of_section = false; // a section that runs has lines here, or among those that are put off

    template <class Visit> void for_each(Visit&& visit) const {
        for (const range& r : more) visit(r);
        for (std::size_t i = 0; i < count; ++i) visit(ranges[i]);
    }
    /// How many lines, at most.
    std::uint64_t lines() const noexcept {
        std::uint64_t sum = 0;
        for_each([&](const range& r) { sum += (r.end - r.first) / line_bytes; });
        return sum;
    }
    void forget() noexcept {
        more.clear();
        count = 0;
    }
};

} // namespace hf::power
