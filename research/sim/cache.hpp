// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One cache: sets of lines, the least recently used leaves first. It records which lines it holds,
// not their contents: the arena has those, since caches are coherent.
#pragma once

#include <base/assert.hpp>
#include <base/line.hpp>
#include <sim/parameters.hpp>

#include <bit>
#include <vector>

namespace hf::sim {

enum class mesi : std::uint8_t { invalid, shared, exclusive, modified };

/// A line that a cache holds.
struct held {
    std::uint64_t line = 0;
    std::uint64_t used = 0; // larger is later
    ticks filled = 0;       // when its bytes arrived
    mesi state = mesi::invalid;
    std::uint16_t marks = 0; // a technique's, which the caches carry along and do not read

    bool dirty() const { return state == mesi::modified; }
};

class cache {
public:
    explicit cache(const cache_shape& shape)
        : ways_(shape.ways), sets_(shape.bytes / (std::uint32_t{line_bytes} * shape.ways)),
          lines_(std::size_t{sets_} * ways_) {
        HF_ASSERT(std::has_single_bit(sets_) && sets_ * ways_ * line_bytes == shape.bytes);
    }

    /// The line, or null. touch() makes it the most recently used.
    held* find(std::uint64_t line) {
        held* const set = set_of(line);
        for (held* at = set; at != set + ways_; ++at)
            if (at->line == line && at->state != mesi::invalid) return at;
        return nullptr;
    }
    void touch(held& at) { at.used = ++now_; }

    /// The place that a line would take: an empty one, or that of the line that has to leave.
    held& place_for(std::uint64_t line) {
        held* const set = set_of(line);
        held* oldest = set;
        for (held* at = set; at != set + ways_; ++at) {
            if (at->state == mesi::invalid) return *at;
            if (at->used < oldest->used) oldest = at;
        }
        return *oldest;
    }

private:
    held* set_of(std::uint64_t line) { return &lines_[(line & (sets_ - 1)) * ways_]; }

    const std::uint32_t ways_, sets_;
    std::uint64_t now_ = 0;
    std::vector<held> lines_;
};

} // namespace hf::sim
