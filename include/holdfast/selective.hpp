// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Selective logging: undo, without a log of stores whose old bytes nobody needs. The program marks
// those stores (holdfast/author/selective.hpp).
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
    /// Computes again what sections store lazily (hf::lazy), from the rest of the pool; the lazy
    /// bytes may hold anything. open() calls it when all sections are recovered, after every end
    /// but a clean close. It stores by failure-atomic functions of this engine, or persists its
    /// stores (hf::persist). If it is cut short, the next open calls it again. If a pool had it
    /// when a crash left the pool open, open refuses that pool without it. Null: lazy stores are
    /// stores like any other.
    std::function<void(pool&)> rebuild = {};
};

/// The engine with the options' defaults, and with others (throws std::bad_alloc).
engine_ptr engine() noexcept;
engine_ptr engine(const options& how);
} // namespace selective

} // namespace hf
