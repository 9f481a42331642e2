// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A pool's file, copied as it stood at one moment, while a process works on it.
//
// (1) The next open recovers the pool that a killed process leaves. It could also recover the pool
//     that the process would leave if it were killed now: every byte of the file, between two
//     instructions of each of its threads. That is what is copied.
// (2) The file is copied while its owner runs, and compared once more. Then the owner is stopped
//     (freezing.hpp), the differences are copied again, and the owner goes on. It is stopped only
//     as long as comparing takes.
// (3) The copy has the owner, the group and the permissions of the pool, as far as the copier may
//     set them: the pool's program can open a copy that root has made.
// (4) The copy has no name before all of it is on the disk and its header says so: feature_whole.
//     An interruption leaves no half copy, and the owner running.
#pragma once

#include <holdfast/copy.hpp>
#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace hf {

class os_file;

/// Called before the copy gets its name, when all of it is on the disk; what this writes it syncs.
/// An error ends the copy, and nothing of it is left.
using copy_check = std::function<status(const os_file& copy)>;

/// Copies the pool's file at 'from', in use or not, to a new file 'to'.
///
/// Errors:   not_found, not_a_pool, exists, pool_full (the disk), permission (a process has the
///           pool open that cannot be seen, or stopped), io_error; what 'check' says.
result<copy_report> copy_pool_file(const std::string& from, const std::string& to,
                                   const copy_options& options, const copy_check& check = {});
/// The same of a file that this process has open as a pool.
result<copy_report> copy_own_file(const os_file& from, const std::string& path,
                                  const std::string& to, const copy_options& options,
                                  const copy_check& check = {});

} // namespace hf
