// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What keeps a file from becoming longer, and what to do about it.
#pragma once

#include <cstdint>
#include <string>

namespace hf {

/// How long this process may make a file (ulimit -f). Where a call would pass that, the kernel
/// sends SIGXFSZ first, which ends a process that has not thought of it: so each call that
/// lengthens a file, or writes to one, asks before.
std::uint64_t file_bytes_allowed() noexcept;
/// What makes room where a call has failed with this error, as the end of a message; empty where
/// the error is of another kind.
std::string way_out_of(int error);

} // namespace hf
