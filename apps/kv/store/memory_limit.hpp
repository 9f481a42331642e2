// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How large a server's pool may grow: less than it could, so that an operator can raise it while
// the server runs.
#pragma once

#include <holdfast/pool.hpp>

#include <cstdint>
#include <string>

namespace hf::kv {

/// Opens or makes a pool that grows to how.max_bytes at first, and whose limit can be raised to
/// eight times as much; less if an older pool cannot.
result<pool> open_to_grow(const std::string& path, const open_options& how);
/// From now on the pool grows to 'bytes', or no more, where its file is larger.
///
/// Errors:   bad_argument (more than it was opened for).
status limit_memory(pool& of, std::uint64_t bytes);

} // namespace hf::kv
