// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a replay of a section's log would change or look at, for other threads to read,
// while the log stands for the section (commit_marks.hpp, 3). The lane's owner writes it, in the
// place of an older section whose log has been written over durably. So a reader that gets parts of
// both misses nothing that counts.
#pragma once

#include <alloc/heap.hpp>
#include <base/assert.hpp>
#include <base/line.hpp>
#include <pool/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace hf {

class left_stores {
public:
    static constexpr std::uint32_t lines_max = 44;
    static constexpr std::uint32_t ranges_max = 4;

    /// Begins another section's: it has stored to these lines and not flushed them; behind the
    /// first 'deferred' of them those of the allocator, which threads share.
    void start(std::span<const std::uintptr_t> lines, std::size_t deferred) noexcept {
        HF_ASSERT_SLOW(lines.size() <= lines_max);
        HF_ASSERT_SLOW(deferred <= lines.size());
        std::atomic_thread_fence(
            std::memory_order_release); // behind the fence of what is written over
        for (std::size_t i = 0; i < lines.size(); ++i) set(lines_[i], lines[i]);
        set(count_, static_cast<std::uint32_t>(lines.size()));
        set(deferred_, static_cast<std::uint32_t>(deferred));
        set(ranges_, 0U);
        set(filled_.first, std::uintptr_t{0});
        set(filled_.end, std::uintptr_t{0});
        std::uint64_t filter[2] = {};
        for (const std::uintptr_t line : lines.first(deferred)) note(filter, line);
        for (std::size_t i = 0; i < 2; ++i) set(filter_[i], filter[i]);
    }
    /// Adds memory of its own. Of more than a few pieces owns() counts the last ones with what lies
    /// between them.
    void add_own(std::uintptr_t first, std::uintptr_t end) noexcept {
        HF_ASSERT_SLOW(first < end);
        // The filter has the piece alone: the gap between pieces may be as long as the pool.
        std::uint64_t filter[2] = {get(filter_[0]), get(filter_[1])};
        note_all(filter, first, end);
        for (std::size_t i = 0; i < 2; ++i) set(filter_[i], filter[i]);
        const std::uint32_t at = std::min(get(ranges_), ranges_max - 1);
        if (get(ranges_) == ranges_max) {
            first = std::min(first, get(own_[at].first));
            end = std::max(end, get(own_[at].end));
        }
        set(own_[at].first, first);
        set(own_[at].end, end);
        set(ranges_, at + 1);
    }
    /// The same, of bytes that were filled in before the section, when locks among them may have
    /// been held.
    void add_filled(std::uintptr_t first, std::uintptr_t end) noexcept {
        add_own(first, end);
        const bool none = get(filled_.end) == 0;
        set(filled_.first, none ? first : std::min(first, get(filled_.first)));
        set(filled_.end, std::max(end, get(filled_.end)));
    }
    /// Starts the write-back of the stores; whether there are any.
    bool flush(hf::medium pm) const noexcept {
        const std::uint32_t count = std::min(get(count_), lines_max);
        for (std::uint32_t i = 0; i < count; ++i)
            pm.flush(reinterpret_cast<const void*>(get(lines_[i])), line_bytes);
        return count != 0;
    }
    /// Whether memory of its own is there.
    bool owns(std::uintptr_t first, std::uintptr_t end) const noexcept {
        const std::uint32_t count = std::min(get(ranges_), ranges_max);
        for (std::uint32_t i = 0; i < count; ++i)
            if (first < get(own_[i].end) && get(own_[i].first) < end) return true;
        return false;
    }
    /// Whether that byte lies between what was filled in before.
    bool was_filled(std::uintptr_t at) const noexcept {
        return at >= get(filled_.first) && at < get(filled_.end);
    }
    /// Whether memory of its own is there, or it has stored to a line of that.
    bool touches(std::uintptr_t first, std::uintptr_t end) const noexcept {
        if (!may_touch(first, end)) return false;
        const std::uint32_t count = std::min(get(deferred_), lines_max);
        for (std::uint32_t i = 0; i < count; ++i)
            if (first < get(lines_[i]) + line_bytes && get(lines_[i]) < end) return true;
        return owns(first, end);
    }

private:
    template <class T> static T get(const std::atomic<T>& from) noexcept {
        return from.load(std::memory_order_relaxed);
    }
    template <class T> static void set(std::atomic<T>& to, T value) noexcept {
        to.store(value, std::memory_order_relaxed);
    }
    static unsigned bit_of(std::uintptr_t line) noexcept {
        return static_cast<unsigned>(line / line_bytes * 0x9e3779b97f4a7c15ULL >> 57);
    }
    static void note(std::uint64_t (&filter)[2], std::uintptr_t line) noexcept {
        const unsigned bit = bit_of(line);
        filter[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    /// Many lines have all the bits, nearly.
    static void note_all(std::uint64_t (&filter)[2], std::uintptr_t first,
                         std::uintptr_t end) noexcept {
        if (end - first > 512 * line_bytes) {
            filter[0] = filter[1] = ~std::uint64_t{0};
            return;
        }
        for (std::uintptr_t line = round_down(first, line_bytes); line < end; line += line_bytes)
            note(filter, line);
    }
    bool may_touch(std::uintptr_t first, std::uintptr_t end) const noexcept {
        if (end - first > 16 * line_bytes) return true;
        for (std::uintptr_t line = round_down(first, line_bytes); line < end; line += line_bytes)
            if ((get(filter_[bit_of(line) / 64]) >> bit_of(line) % 64 & 1) != 0) return true;
        return false;
    }

    struct range {
        std::atomic<std::uintptr_t> first{0}, end{0};
    };
    std::atomic<std::uint64_t> filter_[2]{}; // of the lines that touches() is about, a bit each
    std::atomic<std::uint32_t> count_{0}, deferred_{0}, ranges_{0};
    std::array<range, ranges_max> own_{};
    range filled_;
    std::array<std::atomic<std::uintptr_t>, lines_max> lines_{};
};

} // namespace hf
