// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast bench plain`: other people's structures, one row per operation, engines side by side.
#pragma once

#include <CLI/CLI.hpp>

namespace hf::bench::plain {

void add_plain(CLI::App& bench, char** arguments);

} // namespace hf::bench::plain
