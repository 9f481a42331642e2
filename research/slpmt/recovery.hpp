// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recovery after a crash, before anybody sees the data. Every step may be interrupted and done
// again from the beginning: first the log's contents are written again, then what follows from
// them.
//
// (1) Undo: the records of the transaction after the last resolved one are put back, newest first.
// (2) Redo: records of old memory contents are put back first; then the last resolved transaction's
//     records are written, oldest first.
// (3) The structure is repaired, and only then the interrupted transaction counts as resolved.
#pragma once

#include <slpmt/machine.hpp>
#include <slpmt/objects.hpp>

#include <functional>

namespace hf::slpmt {

/// The last resolved tag of each core.
using progress = std::vector<std::uint64_t>;

/// Recovers an image in place; `repair` is the structure's own part. Returns what was resolved
/// before.
/// Errors: corrupt: a record of the log is invalid. The image is half recovered.
result<progress> recover(image& of, const layout& where, bool redo,
                         const std::function<void(image&)>& repair);

} // namespace hf::slpmt
