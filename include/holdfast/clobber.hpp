// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Clobber-NVM: a section logs its arguments and the inputs it overwrites; after a crash those inputs
// are put back and the function is re-executed to completion (Clobber §3-4).
//
// Ordering: 1 + clobber writes before the commit, 1 at the commit; with several threads 1 more.
#pragma once

namespace hf {
class engine;
namespace clobber {
const hf::engine* engine() noexcept;
} // namespace clobber
} // namespace hf
