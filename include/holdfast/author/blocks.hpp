// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which blocks of a pool are allocated, by the allocator's persistent state. For checks of a
// structure, and for a program that does not yet believe the pointers in a pool's file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf {

class pool;

/// The allocator's own account, counted from its persistent state (O(pool): for checks, not paths).
struct alloc_account {
    std::uint64_t blocks;         // allocated blocks
    std::uint64_t block_bytes;    // their bytes, size-class rounding included
    std::uint64_t heap_bytes;     // bytes the heap manages, metadata excluded
    std::uint64_t metadata_bytes; // bitmaps and chunk tables
    std::uint64_t large_blocks;   // of 'blocks', those of whole chunks
};
alloc_account account(const pool& of);
/// Calls 'visit(context, block, bytes)' for every allocated block.
///
/// Requires: no section runs meanwhile.
/// Cost:     O(pool).
void for_each_block(const pool& of,
                    void (*visit)(void* context, const void* block, std::size_t bytes),
                    void* context);
/// Bytes of the allocated block that starts at 'address', by the allocator's persistent state; 0 if
/// no block starts there. For any address.
///
/// Cost:     O(1).
std::size_t block_bytes(const pool& of, const void* address) noexcept;
/// Whether the allocator's persistent state describes blocks that do not overlap, and nothing else.
/// A program asks this before it believes pointers in a pool's file; block_bytes then says what
/// they lead to.
///
/// Requires: nobody allocates or frees meanwhile.
/// Cost:     reads a 128th of the pool.
bool blocks_disjoint(const pool& of) noexcept;
/// Bytes a request of 'bytes' occupies after size-class rounding.
std::size_t rounded_size(const pool& of, std::size_t bytes) noexcept;

} // namespace hf
