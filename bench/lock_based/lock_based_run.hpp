// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One run of JUSTDO §7.2: threads that share a structure with locks of its own.
//   jd-queue, jd-stack, jd-priority  insert or remove, by chance, half of each; small enough for the caches
//   jd-map, jd-vector                filled to 80 % of the keys; random keys get another value if they are there
// What an operation does is drawn before the clock starts, from fixed seeds.
#pragma once

#include "../run.hpp"
#include "lock_based_under_test.hpp"

namespace hf::bench {

/// Elements that are there when the clock starts, where nobody says.
constexpr std::uint64_t records_by_default(lock_based which) {
    if (which == lock_based::priority) return 100; // an insertion walks through half of them
    return comes_and_goes(which) ? 10'000 : 1'000'000;
}

nlohmann::ordered_json run_lock_based(const run_options& options, lock_based which);

} // namespace hf::bench
