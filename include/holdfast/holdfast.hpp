// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The front header: everything that a program with structures of its own needs. Pools,
// failure-atomic functions, memory, locks, durable containers and persistent objects.
//
// Not included: <holdfast/root.hpp>, whose hf::root may be a program's own name, too;
// <holdfast/containers.hpp>, the names of the standard library's containers in a pool;
// <holdfast/libstdcxx.hpp>, for libstdc++'s node containers in sections;
// <holdfast/author/crash.hpp>, for crash programs; and the C headers for containers. A program that
// minds its compile time includes the parts instead.
//
// A program built with another standard library than Holdfast's own (-stdlib=libc++) gets the parts
// that need none: sections, memory, locks, and pools by the C interface.
#pragma once

#include <holdfast/alloc.hpp>
#include <holdfast/allocator.hpp>
#include <holdfast/holdfast.h>
#include <holdfast/lock.hpp>
#include <holdfast/tx.hpp>
#include <holdfast/txfunc.hpp>

#if !defined(_LIBCPP_VERSION)
#if __cplusplus < 202002L
#error "Holdfast needs C++20: compile with -std=c++20"
#endif
#include <holdfast/copy.hpp>
#include <holdfast/engines.hpp>
#include <holdfast/log.hpp>
#include <holdfast/mod/cache.hpp>
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
