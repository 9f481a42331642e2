// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The object manager under shortage (SIMPO §4.1.3, figure 17): threads change objects of 4 MiB,
// each time one by chance. Engine none has them in volatile memory under locks; simpo in a pool
// with room for all, or for some of them alone, while the others are in files.
#pragma once

#include <CLI/CLI.hpp>

namespace hf::bench {

/// Adds `bench many`.
void add_many_objects(CLI::App& bench);

} // namespace hf::bench
