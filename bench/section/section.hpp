// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `holdfast bench section`: what a section costs, a row per engine, in interleaved rounds.
#pragma once

namespace CLI {
class App;
}

namespace hf::bench {

void add_section(CLI::App& bench, char** arguments);

} // namespace hf::bench
