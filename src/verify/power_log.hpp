// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool that was left open in mode power is its file with its log's lines over it
// (docs/format/power.md): so it is examined, and so it is not repaired.
#pragma once

#include <verify/examine.hpp>
#include <verify/read_file.hpp>

#include <string>

namespace hf::verify {

/// examine() of what the next open would recover from. Notes how much the log holds; one that is
/// missing, or does not fit, is a finding, and the file alone is then no state to look further
/// into.
report examine_with_log(const std::string& path, read_file& file, depth how);

/// ok; or mode_unavailable: part of the pool may be in a log, which a repair ignores.
status repairable(const std::string& path, const read_file& file);

} // namespace hf::verify
