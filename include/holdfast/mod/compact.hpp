// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a pool of MOD containers as small as its contents. `holdfast compact POOL` does the same
// for pools whose structures are all this library's.
#pragma once

#include <holdfast/pool.hpp>

#include <cstdint>
#include <string>

namespace hf::mod {

struct compact_report {
    std::uint64_t bytes_before = 0; // of the pool, its seal not counted
    std::uint64_t bytes_after = 0;
    std::uint64_t nodes = 0; // moved together
};

/// Replaces a pool that nobody has open by a small one: the same roots with the same contents, the
/// same uuid, layout, address and growth limit, closed cleanly and sealed. Its nodes lie together;
/// those of a structure in the order in which a walk meets them. The next update grows it again.
///
/// 'options': layout, layout_hash and expert.relocate count.
/// Requires: the program's own kinds of structures were added (add_kind), and name every ref as it
///           stands in a word of the node, at a multiple of 4 (docs/guide/mod-recipe.md).
/// Cost:     the new file beside the old one until the old one goes; 16 bytes of memory for each
///           node.
/// Crash:    the old pool or the new one has the name. A killed process may leave `.holdfast-new.…`
///           beside it: nothing opens that, and the next compaction there removes it.
/// Errors:   in_use; wrong_layout; missing_engine (a root of a kind that this program does not
///           know; state of another engine); conflict (blocks that are not MOD's, so nobody knows
///           what points to them; a second name; the file was renamed meanwhile); torn; corrupt;
///           pool_full (the disk); permission; mode_unavailable (left open in mode power). The pool
///           is then as it was. One exception, which the message names: if only its folder could
///           not be synced, the new pool is in its place, and a failure of the machine may bring
///           the old one back.
/// Threads:  any.
result<compact_report> compact(const std::string& path, const open_options& options);

} // namespace hf::mod
