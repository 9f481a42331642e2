// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options that a pool's engine clobber was given with.
#pragma once

#include <open/pool_impl.hpp>

#include <holdfast/clobber.hpp>

namespace hf::clobber {

/// Requires: the pool was opened with the engine.
const options& options_of(const pool::impl& pool) noexcept;

} // namespace hf::clobber
