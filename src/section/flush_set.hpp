// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lines a section has stored to, each flushed once at its commit. A line that a small table has
// forgotten is listed, and flushed, twice: costs a few nanoseconds, loses nothing.
#pragma once

#include <base/line.hpp>

#include <holdfast/persist.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace hf {

class flush_set {
public:
    void add(const void* address, std::uint64_t bytes) {
        const std::uintptr_t first = line_of(address);
        const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + bytes;
        if (end - first > 16 * line_bytes) {
            ranges_.push_back({first, end - first});
            return;
        }
        for (std::uintptr_t line = first; line < end; line += line_bytes) {
            std::uintptr_t& seen = seen_[line / line_bytes % seen_.size()];
            if (seen == line) continue;
            seen = line;
            lines_.push_back(line);
        }
    }
    bool empty() const { return lines_.empty() && ranges_.empty(); }
    /// Flushes and forgets everything; the caller fences.
    void flush_all(domain d) {
        for (std::uintptr_t line : lines_) {
            persist::flush(d, reinterpret_cast<const void*>(line), line_bytes);
            seen_[line / line_bytes % seen_.size()] = 0;
        }
        for (const range& r : ranges_)
            persist::flush(d, reinterpret_cast<const void*>(r.first), r.bytes);
        lines_.clear();
        ranges_.clear();
    }

private:
    struct range {
        std::uintptr_t first;
        std::uintptr_t bytes;
    };
    std::array<std::uintptr_t, 128> seen_{};
    std::vector<std::uintptr_t> lines_;
    std::vector<range> ranges_;
};

} // namespace hf
