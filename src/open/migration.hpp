// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the pool keeps of a migration (open_options::migrate), and its end.
//
// (1) The header counts. While it says that a migration is under way the pool has its old layout
//     and its old root, and no other open gets it. One header write ends that: from then on the
//     record's root is the root. One begins it, when what an earlier migration has left (2) is
//     done.
// (2) What that leaves to be done is done before open returns, by each open that finds a record in
//     a pool that is not under way: the root word set, the old root and the record freed.
//     Idempotent: each block is named until it is free.
#pragma once

#include <open/pool_impl.hpp>

#include <cstdint>

namespace hf {

/// Null where there is none, or its word names no block of the heap, which settle_anchors()
/// refuses.
migration_record* migration_of(const pool::impl& pool) noexcept;

/// An object that a word names, and its size in bytes; offset 0: none.
struct named_object {
    std::uint64_t offset, bytes;
};
/// The root object (1), whether or not the root word says so yet.
named_object root_of(const pool::impl& pool) noexcept;
/// What will be the root object; what was it, as long as it may have to be freed.
named_object next_root_of(const pool::impl& pool) noexcept;
named_object old_root_of(const pool::impl& pool) noexcept;

/// Upholds (2).
status finish_migration(pool::impl& pool);

} // namespace hf
