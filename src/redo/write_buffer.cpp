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

buffered_granule* write_buffer::find(std::uint64_t offset) noexcept {
    HF_ASSERT_SLOW(offset % granule_bytes == 0);
    if (size_ == 0) return nullptr;
    const std::uint32_t number = slot_of(offset);
    return number == 0 ? nullptr : &(*parts_[(number - 1) / part_size])[(number - 1) % part_size];
}

buffered_granule& write_buffer::at(std::uint64_t offset) {
    HF_ASSERT_SLOW(offset % granule_bytes == 0);
    if (2 * (size_ + 1) > slots_.size()) grow_table();
    std::uint32_t& slot = slot_of(offset);
    if (slot != 0) return (*parts_[(slot - 1) / part_size])[(slot - 1) % part_size];
    if (size_ == parts_.size() * part_size) parts_.push_back(std::make_unique<part>());
    buffered_granule& made = (*parts_[size_ / part_size])[size_ % part_size];
    made.offset = offset;
    made.mask = 0;
    slot = static_cast<std::uint32_t>(++size_);
    HF_ASSERT_SLOW(find(offset) == &made);
    return made;
}

void write_buffer::grow_table() {
    std::vector<std::uint32_t> larger(std::max(slots_min, 2 * slots_.size()));
    slots_.swap(larger);
    for (std::size_t i = 0; i < size_; ++i)
        slot_of((*this)[i].offset) = static_cast<std::uint32_t>(i + 1);
}

void write_buffer::clear() noexcept {
    if (size_ * 8 < slots_.size())
        while (size_ > 0) { // the newest first: an older one may stand in its way
            slot_of((*this)[size_ - 1].offset) = 0;
            --size_;
        }
    else std::ranges::fill(slots_, 0);
    size_ = 0;
    if (parts_.size() > kept_parts) {
        parts_.resize(kept_parts);
        std::vector<std::uint32_t>().swap(slots_);
    }
}

} // namespace hf::redo
