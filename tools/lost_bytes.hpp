// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files of others are mapped: reading bytes that somebody has cut off, or that the disk has lost,
// raises a signal.
#pragma once

namespace hf::tools {

/// From here on that ends the program with a line that says so, and exit status 2.
void answer_lost_bytes();

} // namespace hf::tools
