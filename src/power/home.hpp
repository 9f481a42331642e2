// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pool's file, home of the lines that the log holds: a checkpoint brings them there, and so does
// recovery. Lines are written whole, so doing it again changes nothing, and what a failure leaves of it is
// cured by doing it again.
#pragma once

#include <power/block_file.hpp>
#include <power/found_log.hpp>

#include <vector>

namespace hf::power {

/// Writes the lines, of each number the last, in few and long writes; durable when it
/// returns. Throws std::bad_alloc.
status bring_home(block_file& home, const std::vector<logged_line>& lines);

} // namespace hf::power
