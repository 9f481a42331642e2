// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A child of fork() has no part in the pools that its parent has open.
//
// (1) Their addresses are not mapped in the child (MADV_DONTFORK): no store of its can reach them.
// (2) Their descriptors are closed there: the parent's lock ends with the parent, and the child can
//     open a pool that the parent has closed.
// (3) Their objects go on existing in the child. They know by the number of forks that they are the
//     parent's, and leave the file alone.
// (4) Groups (hf::durable_together) that a fork is in go on in the parent alone; nothing of the
//     child reaches a log.
// (5) What guards the tables of (2), and the logs, is held across fork(), so that a child never
//     finds it taken.
// A child made without fork() (vfork, clone) runs none of this but (1).
#pragma once

namespace hf::forks {

/// How many fork()s lie between this process and the one that loaded the library.
unsigned count() noexcept;

/// Takes care of (1) to (5), from before main() on. Who has a lock that is held while one of (5) is
/// asked for, and that fork() takes, too, calls this before its own pthread_atfork(): fork() takes
/// first what was told of last.
void watch() noexcept;

} // namespace hf::forks
