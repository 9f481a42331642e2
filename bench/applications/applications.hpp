// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The applications of apps/ as benchmarks: a breadth-first search with a durable queue (bfs), a
// travel agency over four durable maps (vacation). Each on mod, on libpmemobj's transactions, and
// on volatile structures. One thread; what is measured is the same code that the programs run.
#pragma once

#include <CLI/CLI.hpp>

namespace hf::bench {

/// Adds `bench bfs` and `bench vacation`. 'arguments': the program's own, to start again with
/// another environment.
void add_applications(CLI::App& bench, char** arguments);
/// Adds `bench compare bfs` and `bench compare vacation`.
void add_application_comparisons(CLI::App& compare);

} // namespace hf::bench
