// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the pool's seal (pool/seal.hpp) about lanes and blocks that a clean close writes, and
// the seal of all bytes that a copy of a pool in use gets.
#pragma once

#include <open/pool_impl.hpp>
#include <pool/os_file.hpp>

namespace hf {

/// Seals the pool: a checksum of every allocated block. Requires: no thread changes the pool any
/// more, and every commit mark is stored. Leaves the pool unsealed when it was opened unsealed,
/// when there is no room, or when the allocator's tables are damaged: a seal must not vouch for
/// earlier damage.
///
/// Cost:     reads every allocated block, writes 24 bytes a block (docs/format/pool.md: figures);
///           in mode pmem writes back every line of them, though few are dirty.
/// Ordering: in mode pmem 1 point; close makes the headers durable afterwards.
void seal(pool::impl& closing) noexcept;

/// Seals a copy of one moment of an open pool (is_whole_copy), before it gets its name: then
/// `holdfast verify --deep` can verify it. A copy of a closed pool has that pool's seal. Leaves it
/// unsealed in the same cases as seal().
///
/// Cost:     reads the copy once.
/// Errors:   io_error: it cannot be read.
status seal_copy(const os_file& copy);

} // namespace hf
