// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The allocator's account of a pool's blocks.
#include <open/pool_impl.hpp>

#include <holdfast/alloc.hpp>
#include <holdfast/author/blocks.hpp>

#include <algorithm>

namespace hf {

alloc_account account(const pool& of) {
    const pool::impl& pool = of.internals();
    alloc_account sum{};
    const heap& blocks = pool.blocks.durable();
    blocks.for_each([&](block b) {
        ++sum.blocks;
        sum.block_bytes += b.bytes;
        if (!blocks.is_slab(b.bytes)) ++sum.large_blocks;
    });
    for (unsigned i = 0; i < blocks.extent_count(); ++i) {
        sum.heap_bytes += blocks.extent_at(i).chunks * blocks.chunk_bytes();
        sum.metadata_bytes += blocks.extent_at(i).metadata_bytes;
    }
    return sum;
}

void for_each_block(const pool& of, void (*visit)(void*, const void*, std::size_t), void* context) {
    const pool::impl& pool = of.internals();
    pool.blocks.durable().for_each([&](block b) { visit(context, pool.at(b.offset), b.bytes); });
}

std::size_t block_bytes(const pool& of, const void* address) noexcept {
    const pool::impl& pool = of.internals();
    return pool.contains(address)
               ? pool.blocks.durable().allocated_at(pool.offset_of(address)).bytes
               : 0;
}

bool blocks_disjoint(const pool& of) noexcept {
    const heap& blocks = of.internals().blocks.durable();
    std::uint64_t visited = 0;
    bool sound = true;
    blocks.for_each([&](block b) {
        sound = sound && (blocks.is_slab(b.bytes) || blocks.well_formed(b));
        ++visited;
    });
    return sound && visited == blocks.bits_set(); // a bit inside a block is not visited
}

std::size_t rounded_size(const pool& of, std::size_t bytes) noexcept {
    return of.internals().blocks.durable().rounded(std::max<std::size_t>(bytes, 1));
}

} // namespace hf
