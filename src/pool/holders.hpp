// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which process has a file locked: for the refusal that a pool is in use.
#pragma once

#include <string>
#include <sys/types.h>

namespace hf {

/// Who has a file locked that is open here.
struct lock_holder {
    pid_t process; // 0: not to be seen
    /// "process 4711 (holdfast-kv)". The kernel does not say whose an open-file-description lock
    /// is: looked for is a process with the file open and a lock on that description. "another
    /// process" where /proc shows none, as of other users' processes and of other containers'.
    std::string in_words;
};
lock_holder find_lock_holder(int descriptor);
/// In words alone.
std::string holder_of_lock(int descriptor);

} // namespace hf
