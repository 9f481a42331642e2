// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Undo logging: every store's old bytes are logged first; after a crash an unfinished section is
// rolled back. The comparator for clobber, and the engine for functions that cannot be re-executed.
//
// Ordering: words stored (first store each), + 2 at the commit.
#pragma once

namespace hf {
class engine;
namespace undo {
const hf::engine* engine() noexcept;
} // namespace undo
} // namespace hf
