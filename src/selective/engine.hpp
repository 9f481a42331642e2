// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options that a pool's engine selective was given with.
#pragma once

#include <open/pool_impl.hpp>

#include <holdfast/selective.hpp>

namespace hf::selective {

/// Requires: the pool was opened with the engine.
const options& options_of(const pool::impl& pool) noexcept;

} // namespace hf::selective
