// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a new pool looks like: its geometry and its first header.
#pragma once

#include <pool/file_options.hpp>
#include <pool/header.hpp>

namespace hf {

/// Errors:   bad_argument (layout name, sizes or threads out of range).
status check_options(const std::string& path, const file_options& options);
/// Fills 'header'. Requires: check_options is content. The file's size is the end of the one
/// extent.
///
/// Errors:   io_error (no random numbers for the uuid).
status first_header(const std::string& path, const file_options& options, pool_header& header);
/// 0, or the error.
int fill_random(std::uint8_t (&to)[16]) noexcept;
/// How many places for a pool are tried.
inline constexpr unsigned base_attempts_max = 64;
geometry shape_of(const pool_header& header) noexcept;
/// The n-th address to try where a pool with this uuid is mapped elsewhere: pseudo-random, aligned.
std::uint64_t relocated_candidate(const std::uint8_t (&uuid)[16], std::uint64_t max_bytes,
                                  unsigned n) noexcept;

} // namespace hf
