// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <alloc/pool_image.hpp>
#include <base/line.hpp>

#include <cstring>

namespace hf {
pool_image::pool_image(std::span<const std::byte> file, const pool_header& header)
    : file_(file), header_(&header), classes_(&size_classes::for_chunks_of(header.chunk_bytes)) {
    extents_.reserve(header.extent_count);
    for (std::uint32_t i = 0; i < header.extent_count; ++i) {
        const extent& e = header.extents[i];
        const extent_split split =
            split_extent(e.size_bytes, header.chunk_bytes, header.laid_out_bytes[i]);
        extents_.push_back({.entries_offset = e.offset_bytes,
                            .bits_offset = e.offset_bytes + split.entry_table_bytes,
                            .data_offset = e.offset_bytes + split.metadata_bytes,
                            .chunks = split.chunks,
                            .end_offset = e.offset_bytes + e.size_bytes});
    }
}

std::uint64_t pool_image::word(std::uint64_t offset) const noexcept {
    std::uint64_t out = 0;
    if (has(offset, sizeof out)) std::memcpy(&out, file_.data() + offset, sizeof out);
    return out;
}

root_words pool_image::roots() const noexcept {
    root_words out{};
    if (has(root_words_offset, sizeof out))
        std::memcpy(&out, file_.data() + root_words_offset, sizeof out);
    return out;
}

std::uint64_t pool_image::rounded(std::uint64_t bytes) const noexcept {
    if (bytes > header_->max_bytes) return 0;
    if (is_slab(bytes)) return classes_->block_bytes(classes_->class_of(bytes));
    return round_up(bytes, chunk_bytes());
}

const extent_image* pool_image::extent_of(std::uint64_t offset) const noexcept {
    for (const extent_image& e : extents_)
        if (offset >= e.data_offset && offset - e.data_offset < e.chunks * chunk_bytes()) return &e;
    return nullptr;
}

bool pool_image::well_formed(block b) const noexcept {
    const extent_image* e = extent_of(b.offset);
    if (e == nullptr || b.bytes == 0 || b.bytes != rounded(b.bytes)) return false;
    const std::uint64_t within = (b.offset - e->data_offset) % chunk_bytes();
    if (is_slab(b.bytes)) return within % b.bytes == 0 && within + b.bytes <= chunk_bytes();
    return within == 0 && b.bytes <= e->chunks * chunk_bytes() - (b.offset - e->data_offset);
}

} // namespace hf
