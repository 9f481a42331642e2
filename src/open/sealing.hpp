// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a clean close has to say about lanes and blocks, put into the pool's seal (pool/seal.hpp),
// and what a copy of a pool in use has to say of all of its bytes.
#pragma once

#include <open/pool_impl.hpp>
#include <pool/os_file.hpp>

namespace hf {

/// Seals the pool: a checksum of every allocated block. Requires: no thread changes the pool any
/// more, and every commit mark is stored. Leaves the pool unsealed when it was opened so, when
/// there is no room, or when the allocator's tables are not sound: what was damaged before is not
/// sealed.
///
/// Cost:     reads every allocated block, writes 24 bytes a block (docs/format/pool.md: figures);
///           in mode pmem writes back every line of them, of which few are not clean.
/// Ordering: in mode pmem 1 point; close makes the headers durable afterwards.
void seal(pool::impl& closing) noexcept;

/// Seals a copy of a pool that was open, of one moment (is_whole_copy), before it gets its name:
/// then `holdfast verify --deep` can verify it. What was copied closed has its pool's seal. Leaves
/// it unsealed as seal() does.
///
/// Cost:     reads the copy once.
/// Errors:   io_error: it cannot be read.
status seal_copy(const os_file& copy);

} // namespace hf
