// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What engine justdo has left in a pool, read as hostile input: bounded before anything is done
// with it.
#pragma once

#include <justdo/format.hpp>
#include <justdo/registered.hpp>
#include <open/pool_impl.hpp>

#include <span>
#include <vector>

namespace hf::justdo {

/// Null if no thread has ever run a section here.
superblock* superblock_of(const pool_file& file) noexcept;
/// Offsets of threads' blocks, in the order of their words; 0 for no block.
std::span<std::uint64_t> thread_words(superblock& super) noexcept;

/// The blocks that the engine keeps its own state in: no section stores there, but to its frames.
/// Requires: threads' words name blocks of the heap.
class own_blocks {
public:
    explicit own_blocks(const pool::impl& in);
    /// Whether these bytes are among them, and not in the frames of the thread whose block is at
    /// 'thread'.
    bool meet(std::uint64_t offset, std::uint64_t bytes, std::uint64_t thread) const noexcept;

private:
    struct own {
        block b;
        std::uint64_t thread; // whose frames it has
        std::uint64_t frames; // offset of the first one, from pool start
    };
    std::vector<own> blocks_; // by offset
};

/// Whether every thread's block is there and whole, and every open section one that this build can
/// go on with. Reads only.
/// Errors: corrupt, function_changed, address_taken, torn (by the pool's policy).
status inspect(const pool::impl& in);
/// Under salvage: gives up sections that inspect() refuses, and threads that have no block.
void give_up_unsound(pool::impl& in);
/// The same of every open section, which stays half done.
void give_up_all(pool::impl& in, const status& why);

} // namespace hf::justdo
