// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool of MOD containers made as small as what is in it. `holdfast compact POOL` does the same
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

/// Puts a small pool in the place of one that nobody has open: the same roots with the same
/// contents, the same uuid, layout, address and growth limit, closed cleanly and sealed; its nodes
/// lie together, those of a structure in the order in which a walk meets them. The next update
/// grows it again.
///
/// 'options': layout, layout_hash and expert.relocate count.
/// Requires: kinds of structures that are the program's own were added (add_kind), and name every
///           ref as it stands in a word of the node, at a multiple of 4 (docs/guide/mod-recipe.md).
/// Cost:     the new file beside the old one, until that goes; in memory 16 bytes a node.
/// Crash:    the old pool or the new one has the name; a killed process may leave `.holdfast-new.…`
///           beside it, which nothing opens and the next compaction there removes.
/// Errors:   in_use; wrong_layout; missing_engine (a root of a kind that this program does not
///           know; state of another engine); conflict (blocks that are not MOD's: nobody knows what
///           points to them; a second name; the file was renamed meanwhile); torn; corrupt;
///           pool_full (the disk); permission; mode_unavailable (left open in mode power). The pool
///           is as it was; where its folder alone could not be synced, which the message says, the
///           new one is in its place, and a failure of the machine may bring the old one back.
/// Threads:  any.
result<compact_report> compact(const std::string& path, const open_options& options);

} // namespace hf::mod
