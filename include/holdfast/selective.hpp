// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selective logging: undo, but not of stores whose old bytes nobody needs. The program says so
// (holdfast/author/selective.hpp).
//
// Ordering: words stored that are logged (first store each), + 2 at the commit.
// Source:   SLPMT, sections II and IV; docs/guide/selective-logging.md.
#pragma once

#include <holdfast/options.hpp>

#include <functional>

namespace hf {

class pool;

namespace selective {

struct options {
    /// Computes again what sections store lazily (hf::lazy), from the rest of what is in the pool;
    /// the lazy bytes may hold anything. open() calls it when all sections are recovered, after
    /// every end but a clean close; what it stores, it stores by failure-atomic functions of this
    /// engine, or persists (hf::persist). Cut short it is called again by the next open. Pools are
    /// not opened without it that had it when a crash left them open. Null: lazy stores are stores
    /// like any other.
    std::function<void(pool&)> rebuild = {};
};

/// The engine with the options' defaults, and with others (throws std::bad_alloc).
engine_ptr engine() noexcept;
engine_ptr engine(const options& how);
} // namespace selective

} // namespace hf
