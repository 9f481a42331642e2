// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The front header: pools, failure-atomic functions, memory, locks, durable containers and
// persistent objects, all that a program of users' own structures includes. Apart stay
// <holdfast/author/crash.hpp>, for crash programs, <holdfast/libstdcxx.hpp>, for libstdc++'s node
// containers in sections, and the C headers. The parts may be included alone: what a program that
// minds its compile time does.
//
// Where the standard library is another than Holdfast's own (-stdlib=libc++), it is what such a
// program may use: sections, memory, locks, and pools by the C interface.
#pragma once

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/holdfast.h>
#include <holdfast/lock.hpp>
#include <holdfast/tx.hpp>
#include <holdfast/txfunc.hpp>

#if !defined(_LIBCPP_VERSION)
#include <holdfast/copy.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/log.hpp>
#include <holdfast/mod/map.hpp>
#include <holdfast/mod/ordered_map.hpp>
#include <holdfast/mod/queue.hpp>
#include <holdfast/mod/set.hpp>
#include <holdfast/mod/stack.hpp>
#include <holdfast/mod/update.hpp>
#include <holdfast/mod/vector.hpp>
#include <holdfast/pool.hpp>
#include <holdfast/simpo.hpp>
#include <holdfast/statistics.hpp>
#endif
