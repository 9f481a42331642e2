// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Undo logging: the old bytes of every store are logged first; after a crash an unfinished section
// is rolled back. The comparator for clobber, and the engine for functions that cannot be
// re-executed.
//
// Ordering: words stored (first store each), + 2 at the commit.
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
