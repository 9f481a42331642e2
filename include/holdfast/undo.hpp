// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Undo logging: the old bytes of every store are logged first; after a crash an unfinished section
// is rolled back. Engine auto runs sections by it where stores survive in their order: in modes
// process and power.
//
// Ordering: before the commit one for each word that is overwritten, fewer where the compiler makes
//           entries together, ahead of their stores; 2 at the commit. 0 in mode process.
// Crash:    rolled back, by any build that is given the engine.
// Source:   the comparator in Clobber §5.
#pragma once

#include <holdfast/options.hpp>

namespace hf::undo {

struct options {
    /// When a section is durable in pmem mode. by_next_section saves a section two ordering points,
    /// as long as only one thread has begun sections.
    durability durable = durability::on_return;
};

/// The engine with the options' defaults, and with others (throws std::bad_alloc).
engine_ptr engine() noexcept;
engine_ptr engine(const options& how);

} // namespace hf::undo
