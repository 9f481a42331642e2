// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool gets another canonical address.
//
// (1) The clean close writes the address into the header, with the mark that the pool is closed.
//     Before that header write the pool is where it was, behind it it has moved; each is whole.
// (2) Only a pool that holds nothing but what knows its own places is moved.
#pragma once

#include <holdfast/pool.hpp>
#include <holdfast/result.hpp>

#include <cstdint>
#include <string>

namespace hf::tools {

struct rebased {
    std::uint64_t from, to; // canonical addresses
};

/// 'how': the pool's layout, mode and engines. A pool that was left open is recovered first.
///
/// Crash:    the pool before the call, recovered or not, or the pool at its new address.
/// Errors:   what open refuses; conflict (something in it may hold addresses; a pool that was
///           closed stays byte-identical), io_error (the close failed).
result<rebased> rebase_pool(const std::string& path, const open_options& how);

} // namespace hf::tools
