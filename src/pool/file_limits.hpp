// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The limits that keep a file from becoming longer or from being opened, and what to do about them.
#pragma once

#include <cstdint>
#include <string>

namespace hf {

/// The length to which this process may make a file (ulimit -f). Before a call passes that, the
/// kernel sends SIGXFSZ, which ends a process that does not handle it. So every call that lengthens
/// a file, or writes to one, checks the limit first.
std::uint64_t file_bytes_allowed() noexcept;
/// The action that makes room after a call failed with this error, as the end of a message; empty
/// for errors of another kind.
std::string way_out_of(int error);
/// Why this process may not open the file, as a backup that root has put in a server's place.
std::string whose_file(unsigned owner, unsigned mode);

} // namespace hf
