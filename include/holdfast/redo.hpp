// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redo logging: a section's stores wait in volatile memory, where its loads find them. The commit
// writes all of them to the log, and then in place. After a crash a section whose log is whole is
// replayed; any other has changed nothing. Engine auto runs sections by it in mode pmem.
//
// Ordering: 1 for each section, at the commit; 3 while several threads run sections. 1 more if the
//           section changes staged bytes that were not fenced, has allocated more than 64 KiB, or
//           stores to more than 44 lines. 0 if it stores nothing. Durable when the function
//           returns.
// Crash:    replayed, or without a trace, by any build that is given the engine.
// Errors:   std::bad_alloc at the commit if the log finds no room: nothing has changed.
#pragma once

#include <holdfast/options.hpp>

namespace hf::redo {

engine_ptr engine() noexcept;

} // namespace hf::redo
