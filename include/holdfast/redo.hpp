// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redo logging: what a section stores waits in volatile memory, where its loads find it, until the
// commit writes it to the log, whole, and then in place. After a crash a section whose log is whole
// is replayed; any other has changed nothing. Neither needs a function of this build.
//
// Ordering: 1 a section, at the commit, 3 while several threads run sections; one more where it
//           changes
// staged bytes that were not fenced, has allocated more than 64 KiB, or stores to more than 44
// lines. 0 for one that stores nothing. Durable when the function returns.
#pragma once

#include <holdfast/options.hpp>

namespace hf::redo {

engine_ptr engine() noexcept;

} // namespace hf::redo
