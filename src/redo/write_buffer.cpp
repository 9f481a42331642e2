// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <redo/write_buffer.hpp>

#include <algorithm>
#include <bit>

namespace hf::redo {
namespace {
constexpr std::size_t slots_min = 256;
}

/// Where the line's number is, or would be. Requires: there is a free slot.
std::uint32_t& write_buffer::slot_of(std::uint64_t offset) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (offset / line_bytes * 0x9e3779b97f4a7c15ULL >> 20) & mask;
    while (slots_[i] != 0 && (*this)[slots_[i] - 1].is->offset != offset) i = (i + 1) & mask;
    return slots_[i];
}

buffered_line write_buffer::look_up(std::uint64_t offset) noexcept {
    if (size_ > few) {
        const std::uint32_t number = slot_of(offset);
        return number == 0 ? buffered_line{} : remember((*this)[number - 1]);
    }
    for (std::size_t i = 0; i < size_; ++i)
        if (parts_.front()->heads[i].offset == offset) return remember((*this)[i]);
    return {};
}

/// In the part that the next line comes to, and in the table, where it is in use or will be.
void write_buffer::make_room(std::size_t lines) {
    if (size_ == parts_.size() * part_lines)
        parts_.push_back(std::make_unique_for_overwrite<part>());
    if (size_ + lines <= few) return;
    if (2 * (size_ + lines) > slots_.size()) {
        std::vector<std::uint32_t> larger(std::max(slots_min, 2 * std::bit_ceil(size_ + lines)));
        slots_.swap(larger);
        index_all();
    } else if (size_ <= few) {
        index_all();
    }
}

buffered_line write_buffer::look_up_or_add(std::uint64_t offset) {
    if (const buffered_line found = look_up(offset); found.is != nullptr) return found;
    if (size_ >= few || parts_.empty()) [[unlikely]]
        make_room(1);
    const buffered_line made = (*this)[size_];
    *made.is = {offset, 0};
    ++size_;
    if (size_ > few) slot_of(offset) = static_cast<std::uint32_t>(size_);
    return remember(made);
}

write_buffer::made_lines write_buffer::add_whole(std::uint64_t offset, std::size_t most) {
    const std::size_t lines = std::min(most, part_lines - size_ % part_lines);
    make_room(lines);
    const buffered_line made = (*this)[size_];
    const bool in_table = size_ + lines > few;
    for (std::size_t i = 0; i < lines; ++i, offset += line_bytes) {
        HF_ASSERT_SLOW(find(offset).is == nullptr);
        made.is[i] = {offset, whole_line};
        ++size_;
        if (in_table) slot_of(offset) = static_cast<std::uint32_t>(size_);
    }
    return {made.bytes, lines};
}

void write_buffer::index_all() noexcept {
    for (std::size_t i = 0; i < size_; ++i)
        slot_of((*this)[i].is->offset) = static_cast<std::uint32_t>(i + 1);
}

/// The run of whole granules that begins in the line before 'line', at its byte 'at'.
write_buffer::whole_granules write_buffer::run_from(std::size_t line, std::uint64_t rest,
                                                    std::uint64_t at) const noexcept {
    const buffered_line::head* last = (*this)[line - 1].is;
    for (std::uint64_t granules = 0;;) {
        const auto whole = static_cast<std::uint64_t>(std::countr_one(rest >> at)) / granule_bytes;
        granules += whole;
        at += whole * granule_bytes;
        if (at != line_bytes) return {granules, line, rest >> at << at};
        // Lines of two parts have no run of bytes.
        if (line == size_ || line % part_lines == 0 || last[1].offset != last->offset + line_bytes)
            return {granules, line, 0};
        rest = (++last)->mask;
        at = 0;
        ++line;
    }
}

void write_buffer::clear() noexcept {
    if (size_ > few && size_ * 8 >= slots_.size()) {
        std::ranges::fill(slots_, 0);
    } else if (size_ > few) {
        // The newest first: an older one may stand in its way.
        for (std::size_t i = size_; i-- > 0;) slot_of((*this)[i].is->offset) = 0;
    }
    size_ = 0;
    recent_offsets_.fill(no_offset);
    if (parts_.size() > kept_parts) {
        parts_.resize(kept_parts);
        std::vector<std::uint32_t>().swap(slots_);
    }
}

} // namespace hf::redo
