// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carries a repair plan out: on a copy, or in place with a backup of every range that changes.
#pragma once

#include <verify/repair.hpp>

#include <holdfast/result.hpp>

#include <string>

namespace hf::verify {

/// Copies 'path' to 'copy', which must not exist, and changes the copy. The original is only read.
///
/// Crash:    no copy, or the whole of it, mended: it gets its name last.
/// Errors:   those of opening a pool file; exists, pool_full (the disk) …
status mend_copy(const std::string& path, const std::string& copy, const repair_plan& plan);

/// Plans the repair of 'path' and changes the file itself, locked all the while. The bytes that
/// change are first made durable in 'journal', which must not exist; nothing to change: no journal.
///
/// Crash:    the journal has the old bytes; repairing again, with another journal, completes it.
/// Errors:   those of opening a pool file (in_use …); exists (the journal).
result<repair_plan> mend_in_place(const std::string& path, const std::string& journal);

/// The journal's text: what it is, the file's length, a line of offset and old bytes per range.
std::string journal_text(const std::string& path, std::span<const std::byte> before,
                         const repair_plan& plan);

} // namespace hf::verify
