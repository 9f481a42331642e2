// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The structures with locks of their own, by build: lock_based.cpp is compiled once for each
// engine.
#pragma once

#include "../lock_based/lock_based_under_test.hpp"

namespace hf::bench {

using make_ours_lock_based =
    std::unique_ptr<lock_based_under_test>(const lock_based_options& options);
make_ours_lock_based make_lock_based_none, make_lock_based_undo, make_lock_based_redo,
    make_lock_based_justdo, make_lock_based_ido;

} // namespace hf::bench
