// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A child of fork() cannot use the pools that its parent has open.
//
// (1) Their addresses are not mapped in the child (MADV_DONTFORK): no store of the child can reach
//     them.
// (2) Their descriptors are closed there: the parent's lock ends with the parent, and the child can
//     open a pool that the parent has closed.
// (3) Their objects still exist in the child. By the number of forks they find that they belong to
//     the parent, and leave the file alone.
// (4) Groups (hf::durable_together) that are open at a fork go on in the parent alone; nothing of
//     the child reaches a log.
// (5) The locks of the tables of (2), and of the logs, are held across fork(), so a child never
//     finds them taken.
// A child made without fork() (vfork, clone) has only (1).
#pragma once

namespace hf::forks {

/// The number of fork()s between this process and the one that loaded the library.
inline unsigned count() noexcept;

/// Sets up (1) to (5), from before main() on. A module that takes a lock in its own
/// pthread_atfork(), and holds that lock while it asks for one of (5), calls this first: fork()
/// runs the handlers that were registered last first.
void watch() noexcept;

namespace detail {
extern unsigned counted; // changed only while there is no other thread
}
inline unsigned count() noexcept { return detail::counted; }

} // namespace hf::forks
