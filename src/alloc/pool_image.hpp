// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the extents, chunks and blocks of a pool are, read from the bytes of its file as hostile
// input.
//
// (1) Nothing is read outside the bytes given: every place is bounded first, and what lies past the
//     end of a file that was cut reads as zeros.
// (2) Every loop is bounded by the number of bytes given.
// (3) Nothing is written, or mapped at the canonical address.
#pragma once

#include <alloc/heap.hpp>
#include <pool/header.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hf {

/// One extent: where its tables and chunks are, all from pool start.
struct extent_image {
    std::uint64_t entries_offset;
    std::uint64_t bits_offset;
    std::uint64_t data_offset;
    std::uint64_t chunks;
    std::uint64_t end() const noexcept { return end_offset; }
    std::uint64_t end_offset;
};

/// The pool behind a header whose numbers are in bounds.
class pool_image {
public:
    /// Requires: check_header() accepts 'header' for a file that is long enough.
    pool_image(std::span<const std::byte> file, const pool_header& header);

    std::span<const std::byte> file() const noexcept { return file_; }
    const pool_header& header() const noexcept { return *header_; }
    const std::vector<extent_image>& extents() const noexcept { return extents_; }
    const size_classes& classes() const noexcept { return *classes_; }
    std::uint64_t chunk_bytes() const noexcept { return header_->chunk_bytes; }
    /// Words of bits for each chunk.
    std::uint64_t words_per_chunk() const noexcept { return chunk_bytes() / granule_bytes / 64; }
    /// What the header says the file holds, the seal not counted.
    std::uint64_t pool_bytes() const noexcept { return extents_.back().end(); }
    bool has(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        return offset <= file_.size() && bytes <= file_.size() - offset;
    }
    std::uint64_t word(std::uint64_t offset) const noexcept;
    root_words roots() const noexcept;
    /// Size of the block that a request for 'bytes' gets; 0 when none can be that large.
    std::uint64_t rounded(std::uint64_t bytes) const noexcept;
    bool is_slab(std::uint64_t bytes) const noexcept { return bytes <= classes_->slab_max_bytes(); }
    /// The extent whose chunks cover 'offset', or null.
    const extent_image* extent_of(std::uint64_t offset) const noexcept;
    /// True when 'b' could be a block: bounds, slot or chunk, rounded size.
    bool well_formed(block b) const noexcept;

private:
    std::span<const std::byte> file_;
    const pool_header* header_;
    const size_classes* classes_;
    std::vector<extent_image> extents_;
};

/// Something wrong in a chunk's entry or bits.
struct table_fault {
    std::uint64_t offset;       // of the table's word, from pool start
    std::uint64_t chunk_offset; // of the chunk that the word describes
    enum class kind : std::uint8_t { entry, stray_bit, overlap } what;
    std::uint64_t found;
};

/// Walks the allocator's tables in address order.
class table_visitor {
public:
    virtual ~table_visitor() = default;
    virtual void on_block(block b) = 0;
    virtual void on_fault(const table_fault& fault) = 0;
};
void walk_tables(const pool_image& pool, table_visitor& visitor);

} // namespace hf
