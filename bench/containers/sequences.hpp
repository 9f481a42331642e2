// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engines' and peers' sequences by name. One file per peer says how it is used and what
// survives.
#pragma once

#include "sequence_under_test.hpp"

#include <memory>

namespace hf::bench {

using make_named_sequence = std::unique_ptr<sequence_under_test>(const sequence_options& options);
make_named_sequence make_sequence_mod;
// libpmemobj: transactions; reserve and publish.
make_named_sequence make_sequence_pmdk, make_sequence_pmdk_actions;
make_named_sequence make_sequence_floor_1f, make_sequence_floor_2f;
make_named_sequence make_sequence_volatile;

} // namespace hf::bench
