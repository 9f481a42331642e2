// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every engine that keeps something in pools, for programs that open whatever they are given.
#pragma once

#include <holdfast/pool.hpp>

#include <vector>

namespace hf {

/// For open_options::engines. Throws std::bad_alloc.
std::vector<const engine*> all_engines();

} // namespace hf
