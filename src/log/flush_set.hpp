// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lines a section has stored to, each flushed once at its commit. A line that a small table has
// forgotten is listed, and flushed, twice: costs a few nanoseconds, loses nothing. Long lists are
// made short again, so that a section takes memory by what it has touched, not by how often.
#pragma once

#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/medium.hpp>

#include <algorithm>
#include <array>
#include <compare>
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
            if (ranges_.size() >= shorten_at_) shorten();
            HF_ASSERT_SLOW(valid());
            return;
        }
        for (std::uintptr_t line = first; line < end; line += line_bytes) {
            std::uintptr_t& seen = seen_[line / line_bytes % seen_.size()];
            if (seen == line) continue;
            seen = line;
            lines_.push_back(line);
            if (lines_.size() >= shorten_at_) shorten();
        }
        HF_ASSERT_SLOW(valid());
    }
    bool empty() const { return lines_.empty() && ranges_.empty(); }
    /// Entries kept: at most twice the different ones, or 64 Ki of them.
    std::size_t listed() const { return lines_.size() + ranges_.size(); }
    /// Whether it is a list of at most 'count' lines.
    bool is_short(std::size_t count) const { return ranges_.empty() && lines_.size() <= count; }
    const std::vector<std::uintptr_t>& lines() const { return lines_; }
    /// Whether no list is longer than it may become, and nothing is remembered as listed when
    /// nothing is: such a line's next flush would be left out.
    bool valid() const {
        if (lines_.size() >= shorten_at_ || ranges_.size() >= shorten_at_) return false;
        return !lines_.empty() || std::ranges::all_of(seen_, [](auto line) { return line == 0; });
    }
    /// So many lines has it at most, those of ranges counted.
    std::uint64_t lines_at_most() const {
        std::uint64_t count = lines_.size();
        for (const range& r : ranges_) count += r.bytes / line_bytes + 1;
        return count;
    }
    /// Calls 'visit(address, bytes)' for everything.
    template <class Visit> void for_each(Visit&& visit) const {
        for (std::uintptr_t line : lines_) visit(reinterpret_cast<const void*>(line), line_bytes);
        for (const range& r : ranges_) visit(reinterpret_cast<const void*>(r.first), r.bytes);
    }
    /// Flushes and forgets everything; the caller fences.
    void flush_all(hf::medium pm) {
        for (std::uintptr_t line : lines_) {
            pm.flush(reinterpret_cast<const void*>(line), line_bytes);
            seen_[line / line_bytes % seen_.size()] = 0;
        }
        for (const range& r : ranges_) pm.flush(reinterpret_cast<const void*>(r.first), r.bytes);
        lines_.clear();
        ranges_.clear();
        HF_ASSERT_SLOW(valid());
        HF_ASSERT_SLOW(empty());
    }
    /// The same without flushing: what is stored there is of no use any more.
    void forget() {
        for (std::uintptr_t line : lines_) seen_[line / line_bytes % seen_.size()] = 0;
        lines_.clear();
        ranges_.clear();
        HF_ASSERT_SLOW(valid());
        HF_ASSERT_SLOW(empty());
    }

private:
    struct range {
        std::uintptr_t first;
        std::uintptr_t bytes;
        auto operator<=>(const range&) const = default;
    };
    static constexpr std::size_t shorten_at_least = 64 << 10;

    template <class T> static void keep_one_each(std::vector<T>& list) {
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
    }
    __attribute__((noinline)) void shorten() {
        keep_one_each(lines_);
        keep_one_each(ranges_);
        shorten_at_ = std::max(shorten_at_least, 2 * std::max(lines_.size(), ranges_.size()));
        HF_ASSERT_SLOW(valid());
    }

    std::array<std::uintptr_t, 128> seen_{};
    std::vector<std::uintptr_t> lines_;
    std::vector<range> ranges_;
    std::size_t shorten_at_ = shorten_at_least;
};

/// In place of a flush_set where nothing need be flushed.
struct no_lines {
    void add(const void*, std::uint64_t) const noexcept {}
    bool empty() const noexcept { return true; }
    void flush_all(const auto& /*medium*/) const noexcept {}
};

} // namespace hf
