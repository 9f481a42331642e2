// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber-NVM: a section logs its arguments and the inputs it overwrites; after a crash those
// inputs are put back and the function is re-executed to completion (Clobber §3-4).
//
// Ordering: one per clobber write, at least 1, before the commit; 1 at the commit; 1 more once
//           several threads have begun sections.
#pragma once

namespace hf {
class engine;
namespace clobber {
const hf::engine* engine() noexcept;
} // namespace clobber
} // namespace hf
