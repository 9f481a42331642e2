// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a section has stored and not committed: new bytes, by granules of the heap, 16 bytes. No granule
// has bytes of two blocks, so what is stored in place, to memory of the section's own, is never
// hidden by what waits here.
#pragma once

#include <alloc/heap.hpp>
#include <base/assert.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace hf::redo {

/// New bytes of one granule. Bytes that are not in the mask say nothing.
struct buffered_granule {
    alignas(granule_bytes) std::byte bytes[granule_bytes];
    std::uint64_t offset; // from pool start
    std::uint16_t mask;   // a bit for each byte that is to be stored
};

/// The bytes [first, first + bytes) of a granule. Requires: they lie inside of it.
constexpr std::uint16_t mask_of(std::uint64_t first, std::uint64_t bytes) noexcept {
    return static_cast<std::uint16_t>(((1u << bytes) - 1) << first);
}

inline constexpr std::uint16_t whole_granule = 0xffff;

class write_buffer {
public:
    /// The granule at 'offset'; null: nothing of it waits here.
    buffered_granule* find(std::uint64_t offset) noexcept {
        HF_ASSERT_SLOW(offset % granule_bytes == 0);
        if (size_ > few) [[unlikely]]
            return find_by_table(offset);
        for (std::size_t i = 0; i < size_; ++i)
            if (first_part_[i].offset == offset) return &first_part_[i];
        return nullptr;
    }
    /// Made empty when there is none. It stays where it is until clear(). Throws std::bad_alloc.
    buffered_granule& at(std::uint64_t offset) {
        if (size_ > few) [[unlikely]]
            return at_by_table(offset);
        buffered_granule* const found = find(offset);
        if (found != nullptr) return *found;
        return size_ == few ? at_by_table(offset) : add(offset);
    }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    /// In the order in which they were made.
    const buffered_granule& operator[](std::size_t i) const noexcept {
        return (*parts_[i / part_size])[i % part_size];
    }
    void clear() noexcept;

private:
    static constexpr std::size_t few = 8; // are looked at one by one, and are in no table
    static constexpr std::size_t part_size = 256;
    static constexpr std::size_t kept_parts = 64; // after a long section
    using part = std::array<buffered_granule, part_size>;
    static_assert(few < part_size);

    buffered_granule* find_by_table(std::uint64_t offset) noexcept;
    buffered_granule& at_by_table(std::uint64_t offset);
    buffered_granule& add(std::uint64_t offset);
    std::uint32_t& slot_of(std::uint64_t offset) noexcept;
    void grow_table();
    void index_all() noexcept;

    std::vector<std::unique_ptr<part>> parts_;
    buffered_granule* first_part_ = nullptr;
    std::size_t size_ = 0;
    // Open addressing, as many as a power of two, at most half in use: 1 + a granule's number; 0: free. All
    // are free while there are but a few.
    std::vector<std::uint32_t> slots_;
};

} // namespace hf::redo
