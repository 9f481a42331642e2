// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file system under a pool's file. A store to a mapped page needs no new block on the disk if
// the file owns its block. If the file system writes blocks to new places, or shares the block with
// a copy (a reflink, a snapshot), a store takes space, and on a full disk the kernel answers with
// SIGBUS.
#pragma once

#include <cstdint>
#include <string>

namespace hf {

/// Why a store may die on a full disk all the same, or what else this file system does not do;
/// empty: nothing that is known.
std::string file_system_doubt(int descriptor);

struct unshared {
    int failed = 0;          // 0, or the error: ENOSPC, EDQUOT, EIO …
    bool left = false;       // some is shared, and the file system cannot change that
    std::uint64_t bytes = 0; // that were shared, and are the file's own now, on the disk
};
/// Gives the file blocks of its own in place of those that it shares. Its bytes stay as they are.
unshared unshare(int descriptor) noexcept;

} // namespace hf
