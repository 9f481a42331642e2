// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selective logging: undo, but not of stores whose old bytes nobody needs. The program says so (holdfast/author/selective.hpp).
//
// Ordering: words stored that are logged (first store each), + 2 at the commit.
// Source:   SLPMT, sections II and IV; docs/guide/selective-logging.md.
#pragma once

namespace hf {

class engine;
namespace selective {
const hf::engine* engine() noexcept;
} // namespace selective

} // namespace hf
