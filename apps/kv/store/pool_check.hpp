// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For tests: whether a store's pool is whole, and its allocator's account what the root reaches.
#pragma once

#include "store.hpp"

#include <cstdint>

namespace hf::kv {

struct pool_findings {
    std::uint64_t items = 0;
    std::uint64_t bad_tables = 0; // instances whose chains or counts do not hold
    std::uint64_t bad_items = 0;  // in a table that is not the key's, or larger than their block
    std::uint64_t leaked = 0;     // allocated blocks that nothing reaches
    std::uint64_t dangling = 0;   // reached blocks that are not allocated

    bool whole() const noexcept { return bad_tables + bad_items + leaked + dangling == 0; }
};

/// Requires: nobody else uses the store meanwhile.
pool_findings check_pool(store& items);

} // namespace hf::kv
