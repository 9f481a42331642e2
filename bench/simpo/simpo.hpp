// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The microbenchmarks of SIMPO §4.1: an array of two rows, which threads add to. allinc: every call
// goes to every element; rowinc: to one of the rows, each thread in turn to one and the other.
// Engine none is the same class in volatile memory under locks (the whole of it, or each row);
// engine simpo a persistent object; simpo-all the same, with every record made durable by itself;
// simpo-hints with a hint for each row; the others: variants.hpp.
#pragma once

#include <CLI/CLI.hpp>

namespace hf::bench {

/// Adds `bench allinc` and `bench rowinc`.
void add_persistent_objects(CLI::App& bench);

} // namespace hf::bench
