// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of a stack's, queue's or vector's benchmark:
//   stack, queue  pushes and pops in random order, half of each
//   vector        elements at random indices are set; --read-percent of the operations read instead
//   vecswap       two elements at random indices change places
// What an operation does is drawn before the clock starts, from a fixed seed.
#pragma once

#include "../run.hpp"
#include "sequence_under_test.hpp"

namespace hf::bench {

nlohmann::ordered_json run_sequence(const run_options& options, sequence which);

} // namespace hf::bench
