// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// JUSTDO logging: a thread logs the store that it is about to make, and nothing else. A section runs from
// its first lock to its last unlock; after a crash the next open gives it its locks back and goes on with it
// where it was. Nothing is ever rolled back, so a fault inside a section is not undone.
#pragma once

namespace hf {
class engine;
namespace justdo {
const hf::engine* engine() noexcept;
} // namespace justdo
} // namespace hf
