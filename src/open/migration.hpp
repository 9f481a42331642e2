// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the pool keeps of a migration (open_options::migrate), and its end.
//
// (1) The header decides. While it says that a migration is under way the pool has its old layout
//     and its old root, and no other open gets it. One header write ends that: from then on the
//     record's root is the root. One header write begins it, after the remaining steps of an
//     earlier migration (2).
// (2) The remaining steps set the root word and free the old root and the record. Every open that
//     finds a record in a pool that is not under way does them before it returns. They are
//     idempotent: each block is named until it is free.
#pragma once

#include <open/pool_impl.hpp>

#include <cstdint>

namespace hf {

/// Null if the pool has none, or if its word names no block of the heap, which settle_anchors()
/// refuses.
migration_record* migration_of(const pool::impl& pool) noexcept;

/// An object that a word names, and its size in bytes; offset 0: none.
struct named_object {
    std::uint64_t offset, bytes;
};
/// The root object (1), whether or not the root word says so yet.
named_object root_of(const pool::impl& pool) noexcept;
/// The next root object; the old one, as long as it may have to be freed.
named_object next_root_of(const pool::impl& pool) noexcept;
named_object old_root_of(const pool::impl& pool) noexcept;

/// Upholds (2).
status finish_migration(pool::impl& pool);

} // namespace hf
