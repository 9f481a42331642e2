// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which process has a file locked: for the refusal that a pool is in use.
#pragma once

#include <string>
#include <sys/types.h>

namespace hf {

/// The process that holds the lock of a file that is open here.
struct lock_holder {
    pid_t process; // 0: not visible
    /// "process 4711 (holdfast-kv)". The kernel does not report the owner of an
    /// open-file-description lock. So this looks for a process that has the file open, with a lock
    /// on that description.
    /// "another process" if /proc shows none: other users' and other containers' are not visible.
    std::string in_words;
};
lock_holder find_lock_holder(int descriptor);
/// In words alone.
std::string holder_of_lock(int descriptor);

} // namespace hf
