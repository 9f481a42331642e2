// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a pending section of engine clobber can be rolled back (section/roll_back.hpp) instead of
// run again.
//
// (1) Every byte that it overwrites is in the log: inputs as old_bytes records, everything else
//     that is not fresh as overwritten ones.
// (2) Overwritten records are kept ones: in the log before their store is made, but no fence is
//     between them. So they are whole whenever the caches outlive the failure (persistence domains
//     process and eADR), and in ADR when the process alone has died. After a failure of the machine
//     the record of a store that persisted may be missing: then nobody knows whether rolling back
//     is complete, and the records are not read, unless salvage asks for them.
// (3) Whether pending sections kept what they overwrote is in the header
//     (engine_marks::drop_bytes): a pool may have been left open by a build, or with an option,
//     that does not.
// (4) A finished section is not pending to a failure that (2) can roll back: its mark is stored,
//     if not yet durable.
#pragma once

#include <open/pool_impl.hpp>

namespace hf::clobber {

/// Whether rolling back restores every byte; if not, why not. Reads only.
/// Errors:   torn; open_options::salvage does without.
status can_roll_back(const pool::impl& pool, const pending_section& pending);

} // namespace hf::clobber
