// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <base/assert.hpp>
#include <redo/write_buffer.hpp>

#include <algorithm>

namespace hf::redo {
namespace {
constexpr std::size_t slots_min = 256;
}

/// Where the granule's number is, or would be. Requires: there is a free slot.
std::uint32_t& write_buffer::slot_of(std::uint64_t offset) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (offset / granule_bytes * 0x9e3779b97f4a7c15ULL >> 20) & mask;
    while (slots_[i] != 0 && (*this)[slots_[i] - 1].offset != offset) i = (i + 1) & mask;
    return slots_[i];
}

buffered_granule* write_buffer::find_by_table(std::uint64_t offset) noexcept {
    const std::uint32_t number = slot_of(offset);
    return number == 0 ? nullptr : &(*parts_[(number - 1) / part_size])[(number - 1) % part_size];
}

/// Requires: it is not there.
buffered_granule& write_buffer::add(std::uint64_t offset) {
    if (size_ == parts_.size() * part_size) {
        parts_.push_back(std::make_unique<part>());
        first_part_ = parts_.front()->data();
    }
    buffered_granule& made = (*parts_[size_ / part_size])[size_ % part_size];
    made.offset = offset;
    made.mask = 0;
    ++size_;
    return made;
}

/// Requires: all are in the table; or none, it is the first that is more than a few, and not there.
buffered_granule& write_buffer::at_by_table(std::uint64_t offset) {
    if (2 * (size_ + 1) > slots_.size()) grow_table();
    else if (size_ == few) index_all();
    std::uint32_t& slot = slot_of(offset);
    if (slot != 0) return (*parts_[(slot - 1) / part_size])[(slot - 1) % part_size];
    buffered_granule& made = add(offset);
    slot = static_cast<std::uint32_t>(size_);
    HF_ASSERT_SLOW(find(offset) == &made);
    return made;
}

void write_buffer::grow_table() {
    std::vector<std::uint32_t> larger(std::max(slots_min, 2 * slots_.size()));
    slots_.swap(larger);
    index_all();
}

void write_buffer::index_all() noexcept {
    for (std::size_t i = 0; i < size_; ++i)
        slot_of((*this)[i].offset) = static_cast<std::uint32_t>(i + 1);
}

void write_buffer::clear() noexcept {
    if (size_ > few && size_ * 8 >= slots_.size()) {
        std::ranges::fill(slots_, 0);
    } else if (size_ > few) {
        // The newest first: an older one may stand in its way.
        for (std::size_t i = size_; i-- > 0;) slot_of((*this)[i].offset) = 0;
    }
    size_ = 0;
    if (parts_.size() > kept_parts) {
        parts_.resize(kept_parts);
        std::vector<std::uint32_t>().swap(slots_);
    }
}

} // namespace hf::redo
