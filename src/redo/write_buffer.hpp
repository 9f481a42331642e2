// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section has stored and not committed: new bytes, by lines, with a bit for each byte that
// was stored. Bytes of a line that have no bit say nothing: memory of the section's own that shares
// the line is read in place.
#pragma once

#include <alloc/heap.hpp>
#include <base/assert.hpp>
#include <base/line.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace hf::redo {

/// New bytes of a line.
struct buffered_line {
    struct head {
        std::uint64_t offset; // from pool start
        std::uint64_t mask;   // a bit for each byte that waits
    };
    head* is = nullptr; // null: there is no such line
    std::byte* bytes = nullptr;
};

/// The bytes [first, first + bytes) of a line. Requires: there are some, and they lie inside of it.
constexpr std::uint64_t mask_of(std::uint64_t first, std::uint64_t bytes) noexcept {
    return ~std::uint64_t{0} >> (line_bytes - bytes) << first;
}

inline constexpr std::uint64_t whole_line = ~std::uint64_t{0};
inline constexpr std::uint16_t whole_granule = 0xffff;

/// What the commit logs and stores together: bytes of one granule of the heap, or several granules
/// that follow each other, whole.
struct buffered_run {
    std::uint64_t offset; // from pool start
    const std::byte* bytes;
    std::uint64_t granules;
    std::uint16_t mask; // a bit for each byte of a granule that waits

    void drop_first(std::uint64_t count) noexcept {
        offset += count * granule_bytes;
        bytes += count * granule_bytes;
        granules -= count;
    }
};

class write_buffer {
public:
    write_buffer() noexcept { recent_offsets_.fill(no_offset); }
    write_buffer(const write_buffer&) = delete;
    write_buffer& operator=(const write_buffer&) = delete;

    /// The line at 'offset', if some of it waits here.
    buffered_line find(std::uint64_t offset) noexcept {
        HF_ASSERT_SLOW(offset % line_bytes == 0);
        const std::size_t i = offset / line_bytes % recent_count;
        return recent_offsets_[i] == offset ? recent_[i] : look_up(offset);
    }
    /// The line at 'offset', made empty if it is new. It stays where it is until clear(). Throws
    /// std::bad_alloc.
    buffered_line at(std::uint64_t offset) {
        HF_ASSERT_SLOW(offset % line_bytes == 0);
        const std::size_t i = offset / line_bytes % recent_count;
        return recent_offsets_[i] == offset ? recent_[i] : look_up_or_add(offset);
    }
    struct made_lines {
        std::byte* bytes; // of the first; those of the others follow
        std::size_t lines;
    };
    /// Makes lines from 'offset' on, at most so many, and at least one, whole: the caller fills in
    /// their bytes. Throws std::bad_alloc. Requires: none is there.
    made_lines add_whole(std::uint64_t offset, std::size_t most);
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    /// In the order in which they were made.
    buffered_line operator[](std::size_t i) const noexcept {
        part& in = *parts_[i / part_lines];
        return {&in.heads[i % part_lines], in.bytes[i % part_lines]};
    }
    /// All that waits, run by run, in the order in which the lines were made. Requires: nothing
    /// changes meanwhile.
    class runs {
    public:
        explicit runs(const write_buffer& of) noexcept : of_(of) {}
        /// False: there are no more.
        bool next(buffered_run& run) noexcept;

    private:
        const write_buffer& of_;
        std::size_t line_ = 0;   // its number
        std::uint64_t rest_ = 0; // bytes of the line before that wait, and are in no run yet
    };
    void clear() noexcept;

private:
    static constexpr std::size_t few = 4; // are looked at one by one, and are in no table
    static constexpr std::size_t part_lines = 64;
    static constexpr std::size_t recent_count = 8;
    static constexpr std::size_t kept_parts = 64; // after a long section
    // Lines that were made one after the other. Their bytes are a run where they follow each other
    // in the heap.
    struct part {
        alignas(line_bytes) std::byte bytes[part_lines][line_bytes];
        buffered_line::head heads[part_lines];
    };
    static constexpr std::uint64_t no_offset = ~std::uint64_t{0};
    static_assert(few < part_lines);

    buffered_line look_up(std::uint64_t offset) noexcept;
    buffered_line look_up_or_add(std::uint64_t offset);
    buffered_line remember(buffered_line line) noexcept {
        const std::size_t i = line.is->offset / line_bytes % recent_count;
        recent_offsets_[i] = line.is->offset;
        return recent_[i] = line;
    }
    std::uint32_t& slot_of(std::uint64_t offset) noexcept;
    void make_room(std::size_t lines);
    struct whole_granules {
        std::uint64_t count;
        std::size_t line; // as in 'runs'
        std::uint64_t rest;
    };
    whole_granules run_from(std::size_t line, std::uint64_t rest, std::uint64_t at) const noexcept;
    void index_all() noexcept;

    // The line that was asked for last, of each class of lines.
    std::array<std::uint64_t, recent_count> recent_offsets_;
    std::array<buffered_line, recent_count> recent_;
    std::size_t size_ = 0;
    std::vector<std::unique_ptr<part>> parts_;
    // Open addressing, as many as a power of two, at most half in use: 1 + a line's number; 0:
    // free. All are free while there are but a few.
    std::vector<std::uint32_t> slots_;
};

inline bool write_buffer::runs::next(buffered_run& run) noexcept {
    while (rest_ == 0) {
        if (line_ == of_.size_) return false;
        rest_ = of_[line_++].is->mask;
    }
    const buffered_line line = of_[line_ - 1];
    const std::uint64_t at =
        static_cast<std::uint64_t>(std::countr_zero(rest_)) & ~(granule_bytes - 1);
    run = {line.is->offset + at, line.bytes + at, 1, static_cast<std::uint16_t>(rest_ >> at)};
    if (run.mask != whole_granule) {
        rest_ &= ~(std::uint64_t{whole_granule} << at);
        return true;
    }
    const whole_granules all = of_.run_from(line_, rest_, at);
    run.granules = all.count;
    line_ = all.line;
    rest_ = all.rest;
    return true;
}

} // namespace hf::redo
